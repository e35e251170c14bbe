"""Consumer groups of logs that other brokers wrote, older and newer ones, or that were compacted."""

import pytest

from barnabas.errors import FencedMemberEpoch
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import ClassicProtocols, Member
from barnabas.groups.consumer.member_states import MemberState
from barnabas.groups.consumer.messages import Heartbeat
from barnabas.groups.consumer.records import assignment_record, described, member_record
from barnabas.wire.messages import group_records as wire
from barnabas.wire.messages.group_records import encode_key, encode_value
from tests.groups.consumer.machine import Machine

Has = wire.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions


@pytest.fixture
def machine() -> Machine:
    machine = Machine(**{"group.consumer.assignment.interval.ms": "0"})
    machine.change_topic("t", 4)
    return machine


def load(machine: Machine, *pairs) -> ConsumerGroup | None:
    encoded = [(encode_key(key), None if value is None else encode_value(value, 0)) for key, value in pairs]
    machine.log.append(encoded)
    for offset, (key, value) in enumerate(encoded):
        machine.runtime.only.replay(offset, -1, key, value)
    machine.runtime.activate()
    return machine.group()


def beat(machine: Machine, member_id: str, epoch: int, **fields):
    answers = []
    machine.coordinator.consumer.heartbeat(
        Heartbeat("g", member_id, epoch, client_id="c", client_host="/h", **fields), answers.append
    )
    (answer,) = answers
    return answer


def assignment(epoch=3, previous=2, state=0, **partitions) -> wire.ConsumerGroupCurrentMemberAssignmentValue:
    return wire.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=previous,
        state=state,
        assigned_partitions=partitions.get("assigned", []),
        partitions_pending_revocation=partitions.get("revoking", []),
    )


def member_key(member_id="a"):
    return wire.ConsumerGroupMemberMetadataKey(group_id="g", member_id=member_id)


def has_key(member_id="a"):
    return wire.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id)


def group_pair(epoch=3, metadata_hash=0):
    key = wire.ConsumerGroupMetadataKey(group_id="g")
    return key, wire.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)


def targets_pair(epoch=3):
    key = wire.ConsumerGroupTargetAssignmentMetadataKey(group_id="g")
    return key, wire.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)


def test_partitions_without_epochs_are_as_of_the_members_epoch(machine):
    t = machine.image.topics_by_name["t"].id
    value = assignment(assigned=[Has(topic_id=t, partitions=[0, 1])], revoking=[Has(topic_id=t, partitions=[2])])
    group = load(machine, group_pair(), (has_key(), value))
    assert (group.members["a"].assigned, group.members["a"].revoking) == ({t: {0: 3, 1: 3}}, {t: {2: 3}})
    assert not group.is_free(t, 2)


def test_what_a_member_has_may_come_before_who_it_is(machine):
    member = Member("a", topic_names=frozenset({"t"}), epoch=3, previous_epoch=2)
    group = load(machine, assignment_record("g", member), member_record("g", member), group_pair(), targets_pair())
    assert group.members == {"a": member}
    assert group.topics == {"t": 1}


@pytest.mark.parametrize(
    "key",
    [
        wire.ConsumerGroupMetadataKey(group_id="g"),
        wire.ConsumerGroupPartitionMetadataKey(group_id="g"),
        wire.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
        wire.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="a"),
        wire.ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="x"),
        member_key(),
        has_key(),
    ],
    ids=lambda key: type(key).__name__,
)
def test_a_tombstone_of_nothing_is_nothing(machine, key):
    assert load(machine, (key, None)) is None
    group = load(machine, group_pair())
    load(machine, (key, None))
    assert group.members == {}


def test_partition_metadata_of_older_brokers_goes(machine):
    Topic = wire.ConsumerGroupPartitionMetadataValue.TopicMetadata
    key = wire.ConsumerGroupPartitionMetadataKey(group_id="g")
    topic = Topic(topic_id=bytes(16), topic_name="t", num_partitions=4, partition_metadata=[])
    member = Member("a", topic_names=frozenset({"t"}), client_id="c", client_host="/h", epoch=3, previous_epoch=2)
    pairs = group_pair(), targets_pair(), member_record("g", member), assignment_record("g", member)
    load(machine, *pairs, (key, wire.ConsumerGroupPartitionMetadataValue(topics=[topic])))
    assert beat(machine, "a", 3).error is None
    written = [wire.decode_key(each) for each, _ in machine.log[-1]]
    assert [type(each) for each in written[:2]] == [
        wire.ConsumerGroupMetadataKey,
        wire.ConsumerGroupPartitionMetadataKey,
    ]
    assert machine.log[-1][1][1] is None
    assert not machine.group().keeps_partition_metadata


def test_a_group_that_was_deleted_and_made_again_has_nothing_of_the_former(machine):
    beat(machine, "a", 0, topic_names=["t"], rebalance_timeout_ms=1000, owned={})
    beat(machine, "a", -1)
    machine.coordinator.delete("g", lambda error: None)
    beat(machine, "b", 0, topic_names=["t"], rebalance_timeout_ms=1000, owned={})
    machine.restart()
    group = machine.group()
    assert (group.epoch, group.assignment_epoch, list(group.members), list(group.target)) == (2, 2, ["b"], ["b"])


def test_a_state_of_a_newer_broker(machine):
    t = machine.image.topics_by_name["t"].id
    member = Member("a", topic_names=frozenset({"t"}), client_id="c", client_host="/h")
    group = load(
        machine,
        group_pair(),
        targets_pair(),
        member_record("g", member),
        (has_key(), assignment(state=9, assigned=[Has(topic_id=t, partitions=[0], assignment_epochs=[2])])),
    )
    assert group.members["a"].state is MemberState.UNKNOWN
    assert isinstance(beat(machine, "a", 3).error, FencedMemberEpoch)
    assert isinstance(beat(machine, "a", 3, owned={t: [0]}).error, FencedMemberEpoch)
    answer = beat(machine, "a", 0, topic_names=["t"], rebalance_timeout_ms=1000, owned={})
    assert (answer.error, dict(answer.assignment)) == (None, {t: [0, 1, 2, 3]})
    assert machine.group().members["a"].state is MemberState.STABLE


def test_an_assignor_that_another_broker_had(machine):
    member = Member("a", topic_names=frozenset({"t"}), server_assignor="theirs", client_id="c", client_host="/h")
    load(machine, group_pair(), targets_pair(), member_record("g", member._replace(epoch=3)))
    answer = beat(machine, "a", 0, topic_names=["t"], rebalance_timeout_ms=1000, owned={})
    assert (answer.error, [len(partitions) for _, partitions in answer.assignment]) == (None, [4])
    assert machine.coordinator.consumer.describe("g").assignor == "uniform"


def test_a_member_that_speaks_the_classic_protocol_stays_one():
    member = Member("a", classic=ClassicProtocols(10_000, (("range", b"data"), ("other", b""))))
    _, value = member_record("g", member)
    assert described(Member("a"), value) == member


def test_sessions_begin_anew_when_all_is_loaded(machine):
    beat(machine, "a", 0, topic_names=["t"], rebalance_timeout_ms=1000, owned={})
    machine.clock.advance(44)
    machine.restart()
    machine.clock.advance(44)
    assert list(machine.group().members) == ["a"]
    machine.clock.advance(1)
    assert machine.group().members == {}
