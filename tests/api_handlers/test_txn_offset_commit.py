"""TxnOffsetCommit, and its offsets in the responses of other APIs, with the results of Apache Kafka 4.3.1; version 6 as
in KIP-1319.
"""

import pytest

from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.errors import (
    NONE,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    InvalidGroupId,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTxnState,
    OffsetMetadataTooLarge,
    TransactionAbortable,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from barnabas.records.batch import batches
from barnabas.records.record import records_of
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.group_records import OffsetCommitKey, decode_key, decode_value
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.types import ZERO_UUID
from tests.submitting import ready

Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
Partition = Topic.TxnOffsetCommitRequestPartition
FetchTopic = OffsetFetchRequest.OffsetFetchRequestTopic
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
FetchGroupTopic = FetchGroup.OffsetFetchRequestTopics

VERSIONS = range(7)
BY_NAME = range(6)
ADDS_BY_ITSELF = 5
BY_ID = 6

MISSING = UnknownTopicOrPartition.code
UNSTABLE = UnstableOffsetCommit.code


class Producer:
    """A transactional producer of one node, with methods for its requests."""

    def __init__(self, node, transactional_id="x"):
        self.node = node
        self.transactional_id = transactional_id
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        answer = node.call(request, 4)
        if answer.error_code == ConcurrentTransactions.code:  # the earlier transaction is aborted first
            answer = node.call(request, 4)
        assert answer.error_code == NONE
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    @property
    def identity(self):
        return {"transactional_id": self.transactional_id, "producer_id": self.id, "producer_epoch": self.epoch}

    def add(self, group_id="g"):
        answer = self.node.call(AddOffsetsToTxnRequest(group_id=group_id, **self.identity), 3)
        assert answer.error_code == NONE

    def commit(self, version=ADDS_BY_ITSELF, *topics, group_id="g", metadata="m", epoch=-1, **fields):
        """Commits ``("t", {0: 5})``, offset 5 of partition 0; returns topics with (partition, error code)s."""
        requested = []
        for key, offsets in topics or [(self.node.topic_id("t") if version >= BY_ID else "t", {0: 5})]:
            name = {"topic_id": key} if version >= BY_ID else {"name": key}
            extra = {"committed_leader_epoch": epoch} if version >= 2 else {}
            rows = [
                Partition(partition_index=index, committed_offset=offset, committed_metadata=metadata, **extra)
                for index, offset in offsets.items()
            ]
            requested.append(Topic(**name, partitions=rows))
        request = TxnOffsetCommitRequest(group_id=group_id, topics=requested, **(self.identity | fields))
        answer = self.node.call(request, version)
        return [
            (
                each.topic_id if version >= BY_ID else each.name,
                [(row.partition_index, row.error_code) for row in each.partitions],
            )
            for each in answer.topics
        ]

    def code(self, version=ADDS_BY_ITSELF, **fields):
        """Returns the error code of a commit of one offset."""
        ((_, ((_, code),)),) = self.commit(version, **fields)
        return code

    def end(self, committed=True, version=3):
        answer = self.node.call(EndTxnRequest(committed=committed, **self.identity), version)
        assert answer.error_code == NONE


@pytest.fixture
def node(group_node):
    group_node.broker.coordinators.transactions.create_topic(ready)
    return group_node


@pytest.fixture
def producer(node):
    return Producer(node)


def fetch(node, version=7, stable=True, group_id="g", topics=(("t", [0, 1]),)):
    """Returns offsets and error codes by topic and partition."""
    if version < 8:
        requested = topics and [FetchTopic(name=name, partition_indexes=indexes) for name, indexes in topics]
        fields = {"require_stable": stable} if version >= 7 else {}
        found = node.call(OffsetFetchRequest(group_id=group_id, topics=requested, **fields), version).topics
    else:
        by_id = version >= 10
        requested = topics and [
            FetchGroupTopic(
                **({"topic_id": node.topic_id(name)} if by_id else {"name": name}), partition_indexes=indexes
            )
            for name, indexes in topics
        ]
        group = FetchGroup(group_id=group_id, topics=requested)
        (answer,) = node.call(OffsetFetchRequest(groups=[group], require_stable=stable), version).groups
        found = answer.topics
    names = {node.topic_id(name): name for name in ("t", "u")}
    return {
        each.name or names[each.topic_id]: {
            row.partition_index: (row.committed_offset, row.committed_leader_epoch, row.metadata, row.error_code)
            for row in each.partitions
        }
        for each in found
    }


def offsets(node, group_id="g"):
    return {index: row[0] for index, row in fetch(node, stable=False, group_id=group_id)["t"].items()}


# ------------------------------------------------------------ in the transaction


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_seen_when_the_transaction_has_committed(node, producer, version):
    producer.add()
    key = node.topic_id("t") if version >= BY_ID else "t"
    assert producer.commit(version, (key, {0: 5, 1: 6}), epoch=3) == [(key, [(0, NONE), (1, NONE)])]
    assert offsets(node) == {0: -1, 1: -1}
    producer.end()
    epoch = 3 if version >= 2 else -1
    assert fetch(node) == {"t": {0: (5, epoch, "m", NONE), 1: (6, epoch, "m", NONE)}}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_abort_takes_it_back(node, producer, version):
    node.commit(p0=1)
    producer.add()
    producer.commit(version)
    producer.end(committed=False)
    assert offsets(node) == {0: 1, 1: -1}


@pytest.mark.parametrize(
    ("version", "code"),
    [*((version, InvalidTxnState.code) for version in range(4)), (4, TransactionAbortable.code), (5, NONE), (6, NONE)],
)
def test_a_group_that_nobody_has_added(node, producer, version, code):
    assert producer.code(version) == code
    if code == NONE:
        producer.end(version=5)
        assert offsets(node) == {0: 5, 1: -1}
    else:
        assert node.call(ListGroupsRequest(), 4).groups == []


@pytest.mark.parametrize("version", VERSIONS)
def test_of_another_epoch_or_another_producer(node, producer, version):
    producer.add()
    for epoch in (-1, 1, 5):
        assert producer.code(version, producer_epoch=epoch) == InvalidProducerEpoch.code
    assert producer.code(version, producer_id=producer.id + 7) == InvalidProducerIdMapping.code
    assert producer.code(version, producer_id=-1, producer_epoch=-1) == InvalidProducerIdMapping.code
    assert producer.code(version, transactional_id="") == InvalidRequest.code
    producer.end(version=5)


def test_a_producer_that_is_succeeded_has_nothing_pending(node, producer):
    producer.commit()
    successor = Producer(node)
    assert producer.code() == InvalidProducerEpoch.code
    assert fetch(node)["t"][0] == (-1, -1, "", NONE)
    assert successor.code() == NONE


def test_time_runs_out(node, producer):
    producer.commit()
    assert fetch(node)["t"][0][-1] == UNSTABLE
    node.clock.advance(80)
    assert fetch(node)["t"][0] == (-1, -1, "", NONE)


def test_one_transaction_of_several_groups(node, producer):
    groups = [f"g{number}" for number in range(8)]  # in all four partitions
    assert {producer.code(group_id=group_id) for group_id in groups} == {NONE}
    producer.end(version=5)
    assert {offsets(node, group_id)[0] for group_id in groups} == {5}


# ---------------------------------------------------------- before the group


@pytest.mark.parametrize("version", BY_NAME)
def test_topics_and_partitions_that_are_not_there(node, producer, version):
    producer.add()
    assert producer.commit(version, ("v", {0: 1}), ("t", {0: 1, 9: 2})) == [
        ("v", [(0, MISSING)]),
        ("t", [(9, MISSING), (0, NONE)]),
    ]
    assert producer.commit(version, ("v", {0: 1}), group_id="") == [("v", [(0, MISSING)])]
    assert producer.commit(version, ("t", {})) == []
    assert producer.commit(version, ("t", {0: 1}), ("t", {0: 2})) == [("t", [(0, NONE)]), ("t", [(0, NONE)])]


def test_topics_by_id(node, producer):
    t, nobody = node.topic_id("t"), b"n" * 16
    assert producer.commit(6, (nobody, {0: 1}), (t, {0: 1, 9: 2}), (ZERO_UUID, {0: 3})) == [
        (nobody, [(0, UnknownTopicId.code)]),
        (t, [(9, MISSING), (0, NONE)]),
        (ZERO_UUID, [(0, UnknownTopicId.code)]),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_group(node, producer, version):
    assert producer.code(version, group_id="") == InvalidGroupId.code


@pytest.mark.parametrize("version", VERSIONS)
def test_without_its_topic_there_is_no_coordinator(quiet_group_node, version):
    producer = Producer.__new__(Producer)
    producer.node, producer.transactional_id, producer.id, producer.epoch = quiet_group_node, "x", 0, 0
    assert producer.code(version) == CoordinatorNotAvailable.code


@pytest.mark.parametrize("version", VERSIONS)
def test_old_producers_give_up_on_a_coordinator_that_loads(node, producer, version, monkeypatch):
    def commit_offsets(*_):
        raise CoordinatorLoadInProgress

    producer.add()
    monkeypatch.setattr(node.broker.groups, "commit_offsets", commit_offsets)
    error = CoordinatorLoadInProgress if version >= 2 else CoordinatorNotAvailable
    assert producer.code(version) == error.code


# ----------------------------------------------------------------- the group


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_members_have_to_identify_themselves(node, producer, version):
    producer.add()
    member_id = node.stable()

    def code(generation, member_id="", instance=None):
        return producer.code(
            version,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
        )

    assert code(1, member_id) == NONE
    assert code(2, member_id) == IllegalGeneration.code
    assert code(-1, member_id) == IllegalGeneration.code
    assert code(1, "nobody") == UnknownMemberId.code
    assert code(1) == UnknownMemberId.code
    assert code(1, member_id, "i") == UnknownMemberId.code
    assert code(-1) == NONE


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_a_static_member_is_known_by_its_id(node, producer, version):
    producer.add("s")
    member_id = node.join("s", group_instance_id="i").member_id
    fields = {"group_id": "s", "group_instance_id": "i", "generation_id_or_member_epoch": 1}
    assert producer.code(version, member_id="other", **fields) == FencedInstanceId.code
    assert producer.code(version, member_id=member_id, **fields) == NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_producers_do_not_say_for_whom_they_commit(node, producer, version):
    producer.add()
    node.stable()
    assert producer.code(version) == NONE


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_a_generation_of_a_group_that_is_not_there(node, producer, version):
    producer.add()
    error = GroupIdNotFound if version >= 6 else IllegalGeneration
    assert producer.code(version, generation_id_or_member_epoch=1, member_id="a") == error.code
    assert producer.code(version, generation_id_or_member_epoch=-1, member_id="a") == NONE


def test_metadata_that_is_too_long(node, producer):
    assert producer.code(metadata="m" * 4097) == OffsetMetadataTooLarge.code
    assert node.call(ListGroupsRequest(), 4).groups == []
    assert producer.code(metadata="m" * 4096) == NONE


def test_a_group_is_there_with_its_first_pending_offset(node, producer):
    producer.commit()
    (group,) = node.call(ListGroupsRequest(), 5).groups
    assert (group.group_id, group.protocol_type, group.group_state, group.group_type) == ("g", "", "Empty", "classic")
    (described,) = node.call(DescribeGroupsRequest(groups=["g"]), 6).groups
    assert (described.error_code, described.group_state) == (NONE, "Empty")
    producer.end(committed=False, version=5)
    assert len(node.call(ListGroupsRequest(), 5).groups) == 1


def test_a_group_that_is_deleted_meanwhile(node, producer):
    producer.commit()
    (result,) = node.call(DeleteGroupsRequest(groups_names=["g"]), 2).results
    assert result.error_code == NONE
    producer.end(version=5)
    assert offsets(node) == {0: -1, 1: -1}
    assert node.call(ListGroupsRequest(), 4).groups == []


# --------------------------------------------------------------- OffsetFetch


@pytest.mark.parametrize("version", range(5, 11))
def test_what_is_not_stable(node, producer, version):
    node.commit(p0=1, p1=2)
    producer.commit(ADDS_BY_ITSELF, ("t", {0: 5, 2: 6}))
    requested = (("t", [0, 1, 2, 99]), ("u", [0]))
    nothing, unstable = (-1, -1, "", NONE), (-1, -1, "", UNSTABLE)
    found = {"t": {0: (1, -1, "", NONE), 1: (2, -1, "", NONE), 2: nothing, 99: nothing}, "u": {0: nothing}}
    assert fetch(node, version, stable=False, topics=requested) == found
    if version >= 7:
        found["t"] |= {0: unstable, 2: unstable}
    assert fetch(node, version, topics=requested) == found
    # Only committed offsets are returned.
    found = {"t": {0: unstable if version >= 7 else (1, -1, "", NONE), 1: (2, -1, "", NONE)}}
    assert fetch(node, version, topics=None) == found
    producer.end(version=5)
    assert fetch(node, version) == {"t": {0: (5, -1, "m", NONE), 1: (2, -1, "", NONE)}}


def test_what_was_committed_later_is_not_stable_until_the_transaction_ends(node, producer):
    producer.commit()
    node.commit(p0=9)
    assert fetch(node)["t"][0][-1] == UNSTABLE
    producer.end(version=5)
    assert offsets(node) == {0: 9, 1: -1}


# ------------------------------------------------------------------ the log


@pytest.mark.parametrize("version", VERSIONS)
def test_the_records_of_a_transaction(node, producer, version):
    producer.add()
    t = node.topic_id("t")
    producer.commit(version, (t if version >= BY_ID else "t", {0: 5, 1: 6}))
    producer.end()
    log = node.broker.partition(CONSUMER_OFFSETS, node.broker.coordinators.groups.partition_of("g")).log
    written, marker = batches(log.read(0, 1 << 20, up_to=log.log_end_offset, minimum_one=True))
    assert (written.producer_id, written.producer_epoch, written.base_sequence) == (producer.id, producer.epoch, 0)
    assert (written.is_transactional, written.is_control, marker.is_control) == (True, False, True)
    values = []
    for record in records_of(written):
        key = decode_key(record.key)
        value = decode_value(key, record.value)
        assert key == OffsetCommitKey(group="g", topic="t", partition=len(values))
        assert (value.metadata, value.commit_timestamp) == ("m", node.clock.time_ms())
        assert value.topic_id == (t if version >= BY_ID else ZERO_UUID)
        values.append(value.offset)
    assert values == [5, 6]
