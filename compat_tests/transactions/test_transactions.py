"""Transactions of each client, as read_committed and read_uncommitted consumers read them."""

import contextlib
import inspect
import time
from collections.abc import Callable

import pytest

from compat_tests.adapters import CLIENTS, Client, Consumer, Fenced, Place, Refused, Transactional
from compat_tests.adapters.base import WAIT_S
from compat_tests.running import Running
from compat_tests.waiting import poll_until, read

Seen = dict[int, list[tuple[int, bytes | None]]]
"""Offsets and values, by partition."""


def write(producer: Transactional, topic: str, *values: str, partition: int = 0) -> None:
    for value in values:
        producer.send(topic, value.encode(), partition=partition)
    producer.flush()


def reader(client: Client, isolation: str, *places: Place) -> Consumer:
    consumer = client.consumer(isolation=isolation)
    consumer.assign(places)
    return consumer


def seen(consumer: Consumer, count: int) -> Seen:
    found: Seen = {}
    for record in read(consumer, count):
        found.setdefault(record.partition, []).append((record.offset, record.value))
    return found


def test_several_transactions_over_several_partitions(client: Client, topic: str, name: str) -> None:
    """Each transaction adds one offset for its marker, in each of its partitions and in no other."""
    client.create_topic(topic, 3)
    producer, plain = client.transactional(name), client.producer(idempotent=True)
    expected: dict[str, Seen] = {level: {index: [] for index in range(3)} for level in ("committed", "all")}
    ends = [0, 0, 0]

    def note(index: int, value: str, *, committed: bool) -> None:
        for level in ("committed", "all") if committed else ("all",):
            expected[level][index].append((ends[index], value.encode()))
        ends[index] += 1

    for turn, (partitions, commits) in enumerate(
        [((0, 1, 2), True), ((0, 1), False), ((1,), True), ((2,), False), ((0, 2), False), ((0, 1, 2), True)]
    ):
        producer.begin()
        for index in partitions:
            values = [f"{turn} {n}" for n in range(3)]
            write(producer, topic, *values, partition=index)
            for value in values:
                note(index, value, committed=commits)
        plain.send(topic, b"plain %d" % turn, partition=partitions[0]).result()
        note(partitions[0], f"plain {turn}", committed=True)
        (producer.commit if commits else producer.abort)()
        for index in partitions:
            ends[index] += 1
    places = [(topic, index) for index in range(3)]
    for level, isolation in (("committed", "read_committed"), ("all", "read_uncommitted")):
        count = sum(map(len, expected[level].values()))
        consumer = reader(client, isolation, *places)
        assert seen(consumer, count) == expected[level]
        assert [consumer.bounds(place) for place in places] == [(0, end) for end in ends]


def test_a_reader_at_an_open_transaction_continues_after_its_commit(client: Client, topic: str, name: str) -> None:
    client.create_topic(topic)
    producer, plain = client.transactional(name), client.producer()
    plain.send(topic, b"before").result()
    producer.begin()
    write(producer, topic, "within")
    plain.send(topic, b"after").result()
    patient, hasty = (reader(client, level, (topic, 0)) for level in ("read_committed", "read_uncommitted"))
    assert seen(hasty, 3) == {0: [(0, b"before"), (1, b"within"), (2, b"after")]}
    assert seen(patient, 1) == {0: [(0, b"before")]}
    assert patient.poll(0.3) == []
    assert (patient.bounds((topic, 0)), hasty.bounds((topic, 0))) == ((0, 1), (0, 3))
    producer.commit()
    assert seen(patient, 2) == {0: [(1, b"within"), (2, b"after")]}
    assert (patient.bounds((topic, 0)), hasty.bounds((topic, 0))) == ((0, 4), (0, 4))
    for value in (b"next %d" % n for n in range(5)):
        producer.begin()
        write(producer, topic, value.decode())
        producer.abort()
        producer.begin()
        write(producer, topic, value.decode())
        producer.commit()
        assert [record.value for record in read(patient, 1)] == [value]


def test_an_aborted_transaction_is_skipped(client: Client, topic: str, name: str) -> None:
    client.create_topic(topic)
    producer = client.transactional(name)
    producer.begin()
    write(producer, topic, *map(str, range(50)))
    patient = reader(client, "read_committed", (topic, 0))
    assert patient.poll(0.3) == []
    producer.abort()
    producer.begin()
    write(producer, topic, "there")
    producer.commit()
    assert seen(patient, 1) == {0: [(51, b"there")]}
    assert patient.bounds((topic, 0)) == (0, 53)


def test_empty_transactions_leave_nothing(client: Client, topic: str, name: str) -> None:
    client.create_topic(topic)
    producer = client.transactional(name)
    for end in (producer.commit, producer.abort):
        producer.begin()
        end()
    producer.begin()
    write(producer, topic, "one")
    producer.commit()
    assert seen(reader(client, "read_committed", (topic, 0)), 1) == {0: [(0, b"one")]}


def test_a_second_producer_fences_the_first(client: Client, topic: str, name: str) -> None:
    client.create_topic(topic)
    zombie = client.transactional(name)
    zombie.begin()
    write(zombie, topic, "of the first")
    successor = client.transactional(name)
    successor.begin()
    write(successor, topic, "of the second")
    with pytest.raises(Fenced):
        if client.name != "kafka-python":  # its zombie initialises again when it is fenced, and gets a new epoch
            write(zombie, topic, "too late")
        zombie.commit()
    successor.commit()
    assert seen(reader(client, "read_committed", (topic, 0)), 1) == {0: [(2, b"of the second")]}
    everything = reader(client, "read_uncommitted", (topic, 0))
    assert seen(everything, 2) == {0: [(0, b"of the first"), (2, b"of the second")]}
    assert everything.bounds((topic, 0)) == (0, 4)


def test_a_fenced_producer_cannot_begin_another(client: Client, topic: str, name: str) -> None:
    client.create_topic(topic)
    zombie = client.transactional(name)
    successor = client.transactional(name)
    with pytest.raises(Fenced):
        zombie.begin()
        write(zombie, topic, "too late")
        zombie.commit()
    successor.begin()
    write(successor, topic, "in time")
    successor.commit()
    assert seen(reader(client, "read_uncommitted", (topic, 0)), 1) == {0: [(0, b"in time")]}


def test_a_transaction_that_takes_too_long_is_aborted(client: Client, topic: str, name: str) -> None:
    client.create_topic(topic)
    slow = client.transactional(name, timeout_ms=3000)
    slow.begin()
    write(slow, topic, "slow")
    patient = reader(client, "read_committed", (topic, 0))
    client.producer().send(topic, b"plain").result()
    assert seen(patient, 1) == {0: [(1, b"plain")]}
    assert patient.bounds((topic, 0)) == (0, 3)
    with pytest.raises((Fenced, Refused)):
        write(slow, topic, "too late")
        slow.commit()
    again = client.transactional(name)
    again.begin()
    write(again, topic, "in time")
    again.commit()
    assert seen(patient, 1) == {0: [(3, b"in time")]}


def test_a_time_out_beyond_the_brokers_limit_is_refused(client: Client, name: str) -> None:
    with pytest.raises(Refused) as refused:
        client.transactional(name, timeout_ms=900_001)
    assert refused.value.code == 50  # INVALID_TRANSACTION_TIMEOUT


def settled(client: Client, group: str, place: Place) -> int | None:
    """Returns the group's offset once none is pending: the response to a commit or an abort precedes its markers."""
    if client.name == "aiokafka":  # it does not request stable offsets: another client waits for it
        with contextlib.closing(CLIENTS["confluent_kafka"](client.bootstrap)) as patient:
            patient.consumer(group=group, isolation="read_committed").committed(place)
    return client.consumer(group=group, isolation="read_committed").committed(place)


def test_offsets_come_with_the_transaction(client: Client, topic: str, group: str, name: str) -> None:
    client.create_topic(topic)
    place = (topic, 0)
    source = client.producer()
    for n in range(10):
        source.send(topic, b"%d" % n)
    source.flush()
    consumer = client.consumer(group=group)
    consumer.subscribe([topic])
    read(consumer, 10)
    producer = client.transactional(name)
    consumer.commit({place: 3})
    for offset, end, now in ((5, producer.abort, 3), (7, producer.commit, 7), (9, producer.abort, 7)):
        producer.begin()
        producer.send_offsets(consumer, {place: offset})
        end()
        assert settled(client, group, place) == now
    consumer.close()
    successor = client.consumer(group=group)
    successor.subscribe([topic])
    assert [record.value for record in read(successor, 3)] == [b"7", b"8", b"9"]


def test_the_next_owner_waits_for_pending_offsets(client: Client, topic: str, group: str, name: str) -> None:
    if client.name == "aiokafka":
        pytest.skip("aiokafka does not ask for stable offsets (OffsetFetch 3)")
    client.create_topic(topic)
    source = client.producer()
    for n in range(4):
        source.send(topic, b"%d" % n)
    source.flush()
    first = client.consumer(group=group, isolation="read_committed")
    first.subscribe([topic])
    read(first, 4)
    producer = client.transactional(name)
    producer.begin()
    producer.send_offsets(first, {(topic, 0): 2})
    first.close()
    second = client.consumer(group=group, isolation="read_committed")
    second.subscribe([topic])
    poll_until([second], lambda: bool(second.assignment()), "something is assigned")
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        assert second.poll(0.1) == []
    producer.commit()
    assert [record.value for record in read(second, 2, WAIT_S)] == [b"2", b"3"]


@pytest.mark.xdist_group("transaction.version 1")
@pytest.mark.parametrize("library", sorted(CLIENTS))
@pytest.mark.parametrize(
    "scenario",
    [
        test_several_transactions_over_several_partitions,
        test_a_second_producer_fences_the_first,
        test_a_transaction_that_takes_too_long_is_aborted,
        test_offsets_come_with_the_transaction,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_before_kip_890(
    older: Running, library: str, scenario: Callable[..., None], topic: str, group: str, name: str
) -> None:
    with contextlib.closing(CLIENTS[library](older.bootstrap)) as client:
        wants_a_group = {"group": group} if "group" in inspect.signature(scenario).parameters else {}
        scenario(client=client, topic=topic, name=name, **wants_a_group)
