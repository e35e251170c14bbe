"""The consumer protocol of KIP-848 with librdkafka: assignments while members join, leave and fail."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from compat_tests.adapters import Record
from compat_tests.adapters.base import WAIT_S, Place, Refused
from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.waiting import poll_until, read

from .members import Group, Member

ROOT = Path(__file__).parent.parent.parent
PARTITIONS = 6


def all_of(topic: str, partitions: int = PARTITIONS) -> set[Place]:
    return {(topic, index) for index in range(partitions)}


def share_out(members: Sequence[Member], places: set[Place], sizes: Sequence[int]) -> Callable[[], bool]:
    """Returns whether these are all the partitions, each with one owner, with the given number for each member."""

    def reached() -> bool:
        owned = [member.assignment() for member in members]
        return sorted(map(len, owned)) == sorted(sizes) and set().union(*owned) == places

    return reached


def fill(client: ConfluentClient, topic: str, values: Sequence[bytes], partitions: int = PARTITIONS) -> None:
    producer = client.producer()
    for n, value in enumerate(values):
        producer.send(topic, value, partition=n % partitions)
    producer.flush()


def values_of(records: Sequence[Record]) -> list[bytes]:
    return sorted(record.value or b"" for record in records)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_join_and_leave(quick_client: ConfluentClient, members: Group, topic: str, assignor: str) -> None:
    quick_client.create_topic(topic, PARTITIONS)
    everything = all_of(topic)
    there: list[Member] = []
    heard: list[Record] = []
    sent: list[bytes] = []
    for name, sizes in (("a", [6]), ("b", [3, 3]), ("c", [2, 2, 2])):
        joining = members.member(name, assignor=assignor)
        joining.subscribe([topic])
        there.append(joining)
        heard += poll_until(there, share_out(there, everything, sizes), f"{name} has its part")
        fill(quick_client, topic, [b"%s %d" % (name.encode(), n) for n in range(PARTITIONS)])
        sent += [b"%s %d" % (name.encode(), n) for n in range(PARTITIONS)]
        heard += poll_until(there, lambda: at_the_end(there, topic), "all is read")
        for member in there:
            commit(member)
    kept = there[2].assignment()
    there.pop(0).close()
    poll_until(there, share_out(there, everything, [3, 3]), "two members share")
    assert assignor == "range" or kept <= there[1].assignment(), "who stays keeps what it had"
    there.pop(0).close()
    poll_until(there, share_out(there, everything, [6]), "one member has all")
    assert values_of(heard) == sorted(sent)
    assert members.offences == []


def at_the_end(there: Sequence[Member], topic: str) -> bool:
    owned = {place: member for member in there for place in member.assignment()}
    return len(owned) == PARTITIONS and all(
        member.position(place) == member.bounds(place)[1] for place, member in owned.items()
    )


def commit(member: Member) -> None:
    """Commits the member's positions, in its current epoch."""
    member.commit({place: member.position(place) for place in member.assignment()})


def test_more_members_than_partitions(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    quick_client.create_topic(topic, 1)
    there = [members.member(name) for name in "ab"]
    for member in there:
        member.subscribe([topic])
    poll_until(there, share_out(there, all_of(topic, 1), [0, 1]), "one of two has the only partition")
    idle, busy = sorted(there, key=lambda member: len(member.assignment()))
    busy.close()
    poll_until([idle], share_out([idle], all_of(topic, 1), [1]), "the other takes it over")
    assert members.offences == []


def test_a_partition_is_revoked_before_it_is_assigned(
    quick_client: ConfluentClient, members: Group, topic: str
) -> None:
    """A member that does not poll revokes nothing: until it does, no other member gets its partitions."""
    quick_client.create_topic(topic, 2)
    first, second = members.member("first"), members.member("second")
    first.subscribe([topic])
    poll_until([first], share_out([first], all_of(topic, 2), [2]), "one has all")
    second.subscribe([topic])
    for _ in range(10):
        second.poll(0.1)
        assert second.assignment() == set()
    poll_until([first, second], share_out([first, second], all_of(topic, 2), [1, 1]), "both have one")
    assert members.offences == []


def test_the_survivor_takes_over(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    quick_client.create_topic(topic, 4)
    members.configure(consumer_session_timeout_ms="1500")
    command = [sys.executable, "-W", "ignore", "-m", "compat_tests.groups.member", members.bootstrap]
    dying = subprocess.Popen(
        [*command, members.group_id, topic],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    try:
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"4\n"
        survivor = members.member("survivor")
        survivor.subscribe([topic])
        poll_until([survivor], lambda: len(survivor.assignment()) == 2, "two members share")
    finally:
        dying.kill()
        dying.communicate()
    poll_until([survivor], lambda: len(survivor.assignment()) == 4, "the survivor has all")
    fill(quick_client, topic, [b"0", b"1", b"2", b"3"], 4)
    assert values_of(read(survivor, 4)) == [b"0", b"1", b"2", b"3"]


def test_a_static_member_comes_back_to_its_partitions(
    quick_client: ConfluentClient, members: Group, topic: str
) -> None:
    quick_client.create_topic(topic, PARTITIONS)
    stays, goes = members.member("stays", instance="stays"), members.member("goes", instance="goes")
    for member in (stays, goes):
        member.subscribe([topic])
    poll_until([stays, goes], share_out([stays, goes], all_of(topic), [3, 3]), "two members share")
    kept, left = stays.assignment(), goes.assignment()
    goes.close()
    for _ in range(10):
        stays.poll(0.1)
        assert stays.assignment() == kept, "what a static member left is kept for it"
    back = members.member("back", instance="goes")
    back.subscribe([topic])
    poll_until([stays, back], lambda: back.assignment() == left and stays.assignment() == kept, "each has its own")


def test_an_instance_is_one_member(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    first, second = members.member("first", instance="one"), members.member("second", instance="one")
    first.subscribe([topic])
    poll_until([first], lambda: bool(first.assignment()), "the first one is in")
    second.subscribe([topic])
    with pytest.raises(KafkaException) as raised:
        poll_until([first, second], lambda: bool(second.assignment()), "the second one is in")
    assert raised.value.args[0].code() == KafkaError._FATAL
    assert "instance" in raised.value.args[0].str()


def test_a_subscription_to_a_pattern(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    """RE2, resolved by the broker: the client does not see topics that do not match."""
    for name in (f"{topic}-a1", f"{topic}-b1", f"{topic}-c"):
        quick_client.create_topic(name)
    member = members.member("a")
    member.subscribe([f"^{topic}-[ab][0-9]+"])
    wanted = {(f"{topic}-a1", 0), (f"{topic}-b1", 0)}
    poll_until([member], lambda: member.assignment() == wanted, "what matches is assigned")
    quick_client.create_topic(f"{topic}-a22")
    wanted.add((f"{topic}-a22", 0))
    poll_until([member], lambda: member.assignment() == wanted, "what comes later, too")
    member.subscribe([f"^{topic}-a.*", f"{topic}-c"])
    wanted = {(f"{topic}-a1", 0), (f"{topic}-a22", 0), (f"{topic}-c", 0)}
    poll_until([member], lambda: member.assignment() == wanted, "a pattern and a name")
    quick_client.delete_topic(f"{topic}-a1")
    wanted.remove((f"{topic}-a1", 0))
    poll_until([member], lambda: member.assignment() == wanted, "what is deleted is gone")


def test_an_invalid_pattern(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    member = members.member("a")
    member.subscribe([f"^({topic})\\1"])  # librdkafka supports this, RE2 does not
    with pytest.raises(KafkaException) as raised:
        poll_until([member], lambda: bool(member.assignment()), "something is assigned")
    assert "regular expression is not valid" in raised.value.args[0].str()


def test_a_subscription_and_its_topics_change(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    first, second = f"{topic}-1", f"{topic}-2"
    quick_client.create_topic(first)
    member = members.member("a")
    member.subscribe([first, second])
    poll_until([member], lambda: member.assignment() == {(first, 0)}, "the topic that there is")
    quick_client.create_topic(second, 2)
    wanted = {(first, 0), (second, 0), (second, 1)}
    poll_until([member], lambda: member.assignment() == wanted, "and the one that there is now")
    member.subscribe([second])
    poll_until([member], lambda: member.assignment() == {(second, 0), (second, 1)}, "one of them")
    member.unsubscribe()
    poll_until([member], lambda: member.assignment() == set(), "none of them")
    described = quick_client.admin.describe_consumer_groups([members.group_id])[members.group_id]
    assert described.result(WAIT_S).state == ConsumerGroupState.EMPTY
    member.subscribe([first])
    poll_until([member], lambda: member.assignment() == {(first, 0)}, "the other one")


def test_the_next_member_continues_at_the_committed_offsets(
    quick_client: ConfluentClient, members: Group, topic: str
) -> None:
    quick_client.create_topic(topic, 2)
    fill(quick_client, topic, [b"%d" % n for n in range(10)], 2)
    first = members.member("first")
    first.subscribe([topic])
    read(first, 10)
    first.commit()
    assert [first.committed((topic, index)) for index in (0, 1)] == [5, 5]
    first.close()
    fill(quick_client, topic, [b"later"], 2)
    second = members.member("second")
    second.subscribe([topic])
    assert values_of(read(second, 1)) == [b"later"]
    second.commit()
    assert [second.committed((topic, index)) for index in (0, 1)] == [6, 5]


def test_a_consumer_that_commits_by_itself(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    quick_client.create_topic(topic)
    fill(quick_client, topic, [b"%d" % n for n in range(10)], 1)
    first = members.member("first", configs={"enable.auto.commit": True})
    first.subscribe([topic])
    read(first, 10)
    first.close()
    second = members.member("second")
    assert second.committed((topic, 0)) == 10


def test_an_admin_describes_and_aborts_transactions(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    quick_client.create_topic(topic, 2)
    fill(quick_client, topic, [b"0", b"1"], 2)
    admin, group = quick_client.admin, members.group_id
    member = members.member("a", configs={"client.id": "client of a"})
    member.subscribe([topic])
    read(member, 2)
    commit(member)
    listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(WAIT_S).valid
    (mine,) = [each for each in listed if each.group_id == group]
    assert (mine.type, mine.state, mine.is_simple_consumer_group) == (
        ConsumerGroupType.CONSUMER,
        ConsumerGroupState.STABLE,
        False,
    )
    classic = admin.list_consumer_groups(types={ConsumerGroupType.CLASSIC}).result(WAIT_S).valid
    assert group not in [each.group_id for each in classic]
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert (described.type, described.state) == (ConsumerGroupType.CONSUMER, ConsumerGroupState.STABLE)
    assert described.partition_assignor == "uniform"
    (shown,) = described.members
    assert (shown.client_id, shown.host, shown.group_instance_id) == ("client of a", "/127.0.0.1", None)
    assert {(place.topic, place.partition) for place in shown.assignment.topic_partitions} == all_of(topic, 2)
    back = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])
    with pytest.raises(KafkaException) as raised:
        (answer,) = admin.alter_consumer_group_offsets([back]).values()
        refuse(answer.result(WAIT_S).topic_partitions)
    assert raised.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID, "who reads decides"
    with pytest.raises(KafkaException) as raised:
        admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert raised.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    member.close()
    assert admin.describe_consumer_groups([group])[group].result(WAIT_S).state == ConsumerGroupState.EMPTY
    (answer,) = admin.alter_consumer_group_offsets([back]).values()
    refuse(answer.result(WAIT_S).topic_partitions)
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(WAIT_S)
    assert {(place.partition, place.offset) for place in found.topic_partitions} == {(0, 0), (1, 1)}
    admin.delete_consumer_groups([group])[group].result(WAIT_S)
    left = admin.list_consumer_groups().result(WAIT_S).valid
    assert group not in [each.group_id for each in left]


def refuse(places: Sequence[TopicPartition]) -> None:
    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)


def test_a_member_that_does_not_poll_is_removed(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    """The member leaves, others get its partitions, and its commit fails; it may rejoin."""
    quick_client.create_topic(topic, 2)
    fill(quick_client, topic, [b"0", b"1"], 2)
    slow, busy = members.member("slow", configs={"max.poll.interval.ms": 1000}), members.member("busy")
    slow.subscribe([topic])
    read(slow, 2)
    busy.subscribe([topic])
    members.died("slow")
    given = poll_until([busy], share_out([busy], all_of(topic, 2), [2]), "who polls has all")
    read(busy, 2 - len(given))
    commit(busy)
    with pytest.raises(Refused):
        slow.commit({(topic, 0): 0})
    assert busy.committed((topic, 0)) == 1
    with contextlib.suppress(KafkaException):  # poll() may report that the maximum poll interval was exceeded
        slow.poll(0)
    poll_until([slow, busy], share_out([slow, busy], all_of(topic, 2), [1, 1]), "both are back")
