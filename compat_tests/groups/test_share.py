"""Share groups (KIP-932) with librdkafka: records acquired, released and acknowledged."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, Message, ShareConsumer

from compat_tests.adapters.base import WAIT_S
from compat_tests.adapters.confluent_kafka import ConfluentClient

from .members import Group

ROOT = Path(__file__).parent.parent.parent
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


@pytest.fixture
def shared(members: Group) -> Group:
    """A share group that reads topics from their start, with locks that do not expire unless a test sets it."""
    members.configure(share_auto_offset_reset="earliest")
    return members


def fill(client: ConfluentClient, topic: str, count: int, partitions: int = 1, first: int = 0) -> None:
    producer = client.producer()
    for n in range(first, first + count):
        producer.send(topic, b"%d" % n, partition=n % partitions)
    producer.flush()


def taken(consumer: ShareConsumer, seconds: float = 0.5) -> list[Message]:
    messages = list(consumer.poll(timeout=seconds))
    for message in messages:
        assert message.error() is None, message.error()
    return messages


def collect(
    consumers: Sequence[ShareConsumer],
    reached: Callable[[list[tuple[int, int, int]]], bool],
    decide: Callable[[Message], AcknowledgeType | None] = lambda _: ACCEPT,
) -> list[tuple[int, int, int]]:
    """Polls in turns until the condition holds; returns member, value and delivery count of each record.

    ``decide`` returns the acknowledgement of each; with None they are accepted implicitly.
    """
    found: list[tuple[int, int, int]] = []
    deadline = time.monotonic() + WAIT_S
    while not reached(found):
        assert time.monotonic() < deadline, found
        for index, consumer in enumerate(consumers):
            for message in taken(consumer, 0.2):
                found.append((index, number_of(message), message.delivery_count() or 0))
                verdict = decide(message)
                if verdict is not None:
                    consumer.acknowledge(message, verdict)
            printed = consumer.commit_sync(timeout=WAIT_S)
            assert not [error for error in printed.values() if error is not None], printed
    return found


def first_taken(consumer: ShareConsumer) -> list[Message]:
    """Returns the first records; they are not acknowledged."""
    deadline = time.monotonic() + WAIT_S
    while not (messages := taken(consumer)):
        assert time.monotonic() < deadline
    return messages


def number_of(message: Message) -> int:
    return int(message.value() or b"")


def numbers(found: Sequence[tuple[int, int, int]]) -> list[int]:
    return sorted(number for _, number, _ in found)


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_each_record_is_taken_once(quick_client: ConfluentClient, shared: Group, topic: str, mode: str) -> None:
    quick_client.create_topic(topic, 2)
    fill(quick_client, topic, 20, 2)
    consumer = shared.sharer(mode)
    consumer.subscribe([topic])
    verdict = ACCEPT if mode == "explicit" else None
    found = collect([consumer], lambda found: len(found) >= 20, lambda _: verdict)
    consumer.close()
    fill(quick_client, topic, 10, 2, first=20)
    again = shared.sharer(mode)
    again.subscribe([topic])
    found += collect([again], lambda found: len(found) >= 10, lambda _: verdict)
    assert numbers(found) == list(range(30))
    assert {count for _, _, count in found} == {1}


def test_released_records_are_delivered_again_and_rejected_ones_are_not(
    quick_client: ConfluentClient, shared: Group, topic: str
) -> None:
    quick_client.create_topic(topic)
    fill(quick_client, topic, 12)
    consumer = shared.sharer()
    consumer.subscribe([topic])

    def decide(message: Message) -> AcknowledgeType:
        if number_of(message) % 3 == 0:
            return REJECT
        return RELEASE if number_of(message) % 3 == 1 and (message.delivery_count() or 0) < 3 else ACCEPT

    found = collect([consumer], lambda found: len(found) >= 20, decide)
    counts = {number: max(count for _, each, count in found if each == number) for number in range(12)}
    assert counts == {number: 3 if number % 3 == 1 else 1 for number in range(12)}
    fill(quick_client, topic, 1, first=99)
    assert numbers(collect([consumer], bool)) == [99]


def test_a_record_is_archived_at_the_delivery_limit(quick_client: ConfluentClient, shared: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    shared.configure(share_delivery_count_limit="2")
    fill(quick_client, topic, 3)
    consumer = shared.sharer()
    consumer.subscribe([topic])
    found = collect([consumer], lambda found: len(found) >= 6, lambda _: RELEASE)
    fill(quick_client, topic, 1, first=99)
    found += collect([consumer], bool)
    assert sorted((number, count) for _, number, count in found) == [
        *((number, count) for number in range(3) for count in (1, 2)),
        (99, 1),
    ]


def test_a_lock_runs_out(quick_client: ConfluentClient, shared: Group, topic: str) -> None:
    """The records of a slow member are delivered to another, and its own acknowledgement fails."""
    quick_client.create_topic(topic)
    shared.configure(share_record_lock_duration_ms="1000")
    fill(quick_client, topic, 4)
    slow, other = shared.sharer(), shared.sharer()
    slow.subscribe([topic])
    held = first_taken(slow)
    other.subscribe([topic])
    again = first_taken(other)
    assert {(number_of(message), message.delivery_count()) for message in held} == {(n, 1) for n in range(len(held))}
    assert {(number_of(message), message.delivery_count()) for message in again} >= {(0, 2)}
    for message in held:
        slow.acknowledge(message, ACCEPT)
    (error,) = slow.commit_sync(timeout=WAIT_S).values()
    assert error is not None
    assert error.args[0].code() == KafkaError.INVALID_RECORD_STATE


def test_two_members_share_one_partition(quick_client: ConfluentClient, shared: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    consumers = [shared.sharer(configs={"max.poll.records": 10}) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe([topic])
        taken(consumer, 0.1)
    sent = 0
    found: list[tuple[int, int, int]] = []
    deadline = time.monotonic() + WAIT_S
    while {index for index, _, _ in found} != {0, 1}:
        assert time.monotonic() < deadline
        fill(quick_client, topic, 20, first=sent)
        sent += 20
        found += collect(consumers, lambda more: len(more) >= 20)
    assert numbers(found) == list(range(sent))
    assert {count for _, _, count in found} == {1}


def test_records_of_a_killed_member_are_delivered_to_another(
    quick_client: ConfluentClient, shared: Group, topic: str
) -> None:
    quick_client.create_topic(topic)
    shared.configure(share_session_timeout_ms="1500", share_record_lock_duration_ms="60000")
    fill(quick_client, topic, 5)
    command = [sys.executable, "-W", "ignore", "-m", "compat_tests.groups.sharer", shared.bootstrap, shared.group_id]
    dying = subprocess.Popen(
        [*command, topic], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    try:
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"acquired\n"
    finally:
        dying.kill()
        dying.communicate()
    survivor = shared.sharer()
    survivor.subscribe([topic])
    found = collect([survivor], lambda found: len(found) >= 5)
    assert numbers(found) == list(range(5))


def test_a_member_that_closes_releases_its_records(quick_client: ConfluentClient, shared: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    fill(quick_client, topic, 5)
    first, second = shared.sharer(), shared.sharer()
    first.subscribe([topic])
    held = first_taken(first)
    first.acknowledge(held[0], ACCEPT)
    first.close()
    second.subscribe([topic])
    wanted = set(range(5)) - {number_of(held[0])}
    found = collect([second], lambda found: wanted <= set(numbers(found)))
    assert numbers(found) == sorted(wanted)


def test_a_group_begins_at_the_end_by_default(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    fill(quick_client, topic, 5)
    consumer = members.sharer()
    consumer.subscribe([topic])
    found: list[int] = []
    sent, deadline = 5, time.monotonic() + WAIT_S
    while not found:  # records sent before the group has looked up the end offset are not delivered
        assert time.monotonic() < deadline
        fill(quick_client, topic, 1, first=sent)
        sent += 1
        for message in taken(consumer, 0.2):
            found.append(number_of(message))
            consumer.acknowledge(message, ACCEPT)
    assert min(found) >= 5


def test_topics_come_and_go(quick_client: ConfluentClient, shared: Group, topic: str) -> None:
    first, second = f"{topic}-1", f"{topic}-2"
    quick_client.create_topic(first)
    fill(quick_client, first, 3)
    consumer = shared.sharer()
    consumer.subscribe([first, second])
    assert numbers(collect([consumer], lambda found: len(found) >= 3)) == [0, 1, 2]
    quick_client.create_topic(second)
    fill(quick_client, second, 3, first=10)
    assert numbers(collect([consumer], lambda found: len(found) >= 3)) == [10, 11, 12]
    consumer.subscribe([second])
    fill(quick_client, first, 3, first=20)
    fill(quick_client, second, 3, first=30)
    assert numbers(collect([consumer], lambda found: len(found) >= 3)) == [30, 31, 32]
    consumer.unsubscribe()
    assert consumer.subscription() == []


def test_only_committed_records_where_that_is_wanted(quick_client: ConfluentClient, shared: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    shared.configure(share_isolation_level="read_committed")
    producer = quick_client.transactional(topic)
    for first, end in ((0, producer.commit), (10, producer.abort), (20, producer.commit)):
        producer.begin()
        for n in range(first, first + 5):
            producer.send(topic, b"%d" % n)
        producer.flush()
        end()
    consumer = shared.sharer()
    consumer.subscribe([topic])
    found = collect([consumer], lambda found: len(found) >= 10)
    assert numbers(found) == [*range(5), *range(20, 25)]


def test_a_group_is_deleted_when_nobody_is_in_it(quick_client: ConfluentClient, shared: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    fill(quick_client, topic, 3)
    consumer = shared.sharer()
    consumer.subscribe([topic])
    assert numbers(collect([consumer], lambda found: len(found) >= 3)) == [0, 1, 2]
    with pytest.raises(KafkaException) as raised:
        quick_client.admin.delete_consumer_groups([shared.group_id])[shared.group_id].result(WAIT_S)
    assert raised.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    consumer.close()
    quick_client.admin.delete_consumer_groups([shared.group_id])[shared.group_id].result(WAIT_S)
    with contextlib.closing(shared.sharer()) as again:
        again.subscribe([topic])
        found = collect([again], lambda found: len(found) >= 3)
    assert [(number, count) for _, number, count in sorted(found)] == [(0, 1), (1, 1), (2, 1)], "nothing is remembered"
