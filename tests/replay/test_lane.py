"""The order in which requests of one recorded connection are sent to several nodes."""

import asyncio

import pytest

from barnabas.diagnosis import Address
from barnabas.replay.connection import Lane

ONE, TWO = Address("one", 1), Address("two", 2)


class Node:
    """A node that answers when the test says so."""

    reason = ""

    def __init__(self, name, log):
        self.name, self.log, self.answers = name, log, []

    def send(self, frame, *, is_answered):
        self.log.append((self.name, frame))
        answer = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        if not is_answered:
            answer.set_result(b"")
        return answer

    def answer(self):
        self.answers.pop(0).set_result(b"answer")

    def close(self):
        self.log.append((self.name, "closed"))


@pytest.fixture
def log():
    return []


@pytest.fixture
def nodes(log):
    return {address: Node(address.host, log) for address in (ONE, TWO)}


@pytest.fixture
def lane(nodes):
    async def connect(address):
        return nodes[address]

    return Lane(connect, ONE)


async def settle():
    """Has the loop run all that can run."""
    for _ in range(50):
        await asyncio.sleep(0)


def test_requests_to_one_node_are_in_flight_together(lane, nodes, log):
    async def run():
        for frame in (b"1", b"2"):
            await lane.send([(ONE, frame)], is_answered=True)
        assert log == [("one", b"1"), ("one", b"2")]

    asyncio.run(run())


def test_a_request_to_another_node_waits_for_the_answers_before_it(lane, nodes, log):
    async def run():
        await lane.send([(ONE, b"1")], is_answered=True)
        second = await lane.send([(TWO, b"2")], is_answered=True)
        await settle()
        assert log == [("one", b"1")]
        nodes[ONE].answer()
        await settle()
        assert log == [("one", b"1"), ("two", b"2")]
        nodes[TWO].answer()
        assert await second == [b"answer"]

    asyncio.run(run())


def test_no_request_overtakes_one_that_waits(lane, nodes, log):
    async def run():
        await lane.send([(ONE, b"1")], is_answered=True)
        for frame in (b"2", b"3", b"4"):
            last = await lane.send([(TWO, frame)], is_answered=True)
        await settle()
        assert log == [("one", b"1")]
        nodes[ONE].answer()
        await settle()
        assert log[1:] == [("two", b"2"), ("two", b"3"), ("two", b"4")]
        for _ in range(3):
            assert not last.done()
            nodes[TWO].answer()
            await settle()
        assert last.done()

    asyncio.run(run())


def test_a_request_of_several_nodes_has_an_answer_of_each(lane, nodes, log):
    async def run():
        answers = await lane.send([(ONE, b"1"), (TWO, b"2")], is_answered=True)
        await lane.send([(ONE, b"3")], is_answered=True)
        nodes[ONE].answer()
        await settle()
        assert log == [("one", b"1"), ("two", b"2")]
        nodes[TWO].answer()
        await settle()
        assert log[2:] == [("one", b"3")]
        assert await answers == [b"answer", b"answer"]

    asyncio.run(run())


def test_what_has_no_answer_is_not_waited_for(lane, nodes, log):
    async def run():
        await lane.send([(ONE, b"1")], is_answered=False)
        await settle()
        await lane.send([(TWO, b"2")], is_answered=True)
        await settle()
        assert log == [("one", b"1"), ("two", b"2")]
        lane.close()
        assert log[2:] == [("one", "closed"), ("two", "closed")]

    asyncio.run(run())
