"""Groups of every client: members share partitions, commit, leave, rejoin."""

import time
from collections.abc import Sequence

import pytest

from compat_tests.adapters import Client, Consumer, Place, Producer
from compat_tests.adapters.base import WAIT_S
from compat_tests.waiting import poll_all, poll_until, read

PARTITIONS = 6


def fill(producer: Producer, topic: str, count: int, partition: int = 0) -> None:
    for n in range(count):
        producer.send(topic, b"%d" % n, partition=partition)
    producer.flush()


def all_places(topic: str) -> set[Place]:
    return {(topic, index) for index in range(PARTITIONS)}


def shared_out(members: Sequence[Consumer], topic: str, each: int) -> bool:
    """Returns whether each member has the same number of partitions, and each partition has one owner."""
    assignments = [member.assignment() for member in members]
    return all(len(mine) == each for mine in assignments) and set().union(*assignments) == all_places(topic)


def a_round_reaches_everyone(producer: Producer, members: Sequence[Consumer], topic: str, word: bytes) -> None:
    """Sends one record to each partition; its owner gets it, once."""
    for index in range(PARTITIONS):
        producer.send(topic, word, partition=index)
    producer.flush()
    heard: dict[Place, int] = {}
    deadline = time.monotonic() + WAIT_S
    while len(heard) < PARTITIONS:
        assert time.monotonic() < deadline, f"only {sorted(heard)} were heard of"
        owned = [member.assignment() for member in members]
        for mine, records in zip(owned, poll_all(members), strict=True):
            for record in records:
                assert (record.topic, record.partition) in mine
                if record.value == word:
                    heard[record.topic, record.partition] = heard.get((record.topic, record.partition), 0) + 1
    assert heard == dict.fromkeys(all_places(topic), 1)


def test_a_new_group_has_committed_nothing(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic)
    consumer = client.consumer(group=group)
    consumer.assign([(topic, 0)])
    assert consumer.committed((topic, 0)) is None


def test_the_next_consumer_continues_at_the_committed_offsets(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic)
    producer = client.producer()
    fill(producer, topic, 10)
    first = client.consumer(group=group)
    first.subscribe([topic])
    assert len(read(first, 10)) == 10
    first.commit()
    assert first.committed((topic, 0)) == 10
    first.close()
    producer.send(topic, b"after").result()
    second = client.consumer(group=group)
    second.subscribe([topic])
    assert [record.value for record in read(second, 1)] == [b"after"]


def test_named_offsets_are_committed(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic, 2)
    consumer = client.consumer(group=group)
    consumer.assign([(topic, 0), (topic, 1)])
    consumer.commit({(topic, 0): 7})
    assert consumer.committed((topic, 0)) == 7
    assert consumer.committed((topic, 1)) is None
    consumer.commit({(topic, 0): 3, (topic, 1): 11})
    assert consumer.committed((topic, 0)) == 3
    assert consumer.committed((topic, 1)) == 11


def test_a_commit_without_waiting_arrives(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic)
    fill(client.producer(), topic, 5)
    consumer = client.consumer(group=group)
    consumer.subscribe([topic])
    read(consumer, 5)
    consumer.commit_soon()
    poll_until([consumer], lambda: consumer.committed((topic, 0)) == 5, "the offset is committed")


def test_a_consumer_that_commits_by_itself_does_so_when_it_closes(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic)
    producer = client.producer()
    fill(producer, topic, 10)
    first = client.consumer(group=group, auto_commit=True)
    first.subscribe([topic])
    read(first, 10)
    first.close()
    producer.send(topic, b"after").result()
    second = client.consumer(group=group)
    second.subscribe([topic])
    assert [record.value for record in read(second, 1)] == [b"after"]


def test_two_groups_do_not_share(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic)
    fill(client.producer(), topic, 10)
    for name in (f"{group}-1", f"{group}-2"):
        consumer = client.consumer(group=name)
        consumer.subscribe([topic])
        assert [record.value for record in read(consumer, 10)] == [b"%d" % n for n in range(10)]


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_three_members_join_and_leave(client: Client, topic: str, group: str, assignor: str) -> None:
    client.create_topic(topic, PARTITIONS)
    producer = client.producer()
    members: list[Consumer] = []
    for count in (1, 2, 3):
        joining = client.consumer(group=group, assignor=assignor)
        joining.subscribe([topic])
        members.append(joining)
        poll_until(members, lambda: shared_out(members, topic, PARTITIONS // len(members)), f"{count} members share")
    a_round_reaches_everyone(producer, members, topic, b"three")
    members.pop(1).close()
    poll_until(members, lambda: shared_out(members, topic, 3), "two members share")
    a_round_reaches_everyone(producer, members, topic, b"two")
    members.pop(0).close()
    poll_until(members, lambda: shared_out(members, topic, 6), "one member has all")
    a_round_reaches_everyone(producer, members, topic, b"one")


def test_a_static_member_comes_back_to_its_partitions(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic, PARTITIONS)
    stays = client.consumer(group=group, instance="stays", session_ms=30_000)
    goes = client.consumer(group=group, instance="goes", session_ms=30_000)
    members = [stays, goes]
    for member in members:
        member.subscribe([topic])
    poll_until(members, lambda: shared_out(members, topic, 3), "two members share")
    kept, left = stays.assignment(), goes.assignment()
    goes.close()
    back = client.consumer(group=group, instance="goes", session_ms=30_000)
    back.subscribe([topic])

    def settled() -> bool:
        return back.assignment() == left and stays.assignment() == kept

    poll_until([stays, back], settled, "each has what it had")
    a_round_reaches_everyone(client.producer(), [stays, back], topic, b"together")


def test_a_subscription_can_change(client: Client, topic: str, group: str) -> None:
    first, second = f"{topic}-1", f"{topic}-2"
    client.create_topic(first)
    client.create_topic(second)
    producer = client.producer()
    fill(producer, first, 3)
    fill(producer, second, 4)
    consumer = client.consumer(group=group)
    consumer.subscribe([first])
    assert {record.topic for record in read(consumer, 3)} == {first}
    consumer.commit()
    consumer.subscribe([first, second])
    assert [(record.topic, record.offset) for record in read(consumer, 4)] == [(second, n) for n in range(4)]
    assert consumer.assignment() == {(first, 0), (second, 0)}
