"""Partitions of internal topics that move: the errors of each API meanwhile, and the state afterwards."""

import pytest

from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.errors import NONE, CoordinatorLoadInProgress, NotCoordinator, NotLeaderOrFollower
from barnabas.offsets.pending import Producer
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.submitting import append, ready, submitted

NOBODY, HERE = -1, 1
LOADING, ELSEWHERE = CoordinatorLoadInProgress.code, NotCoordinator.code
PRODUCER = Producer(1000, 0)


class Node:
    """A node whose partitions of internal topics have records, and a leader or none."""

    def __init__(self, group_node):
        self.node = group_node
        self.broker = group_node.broker
        for runtime in (self.broker.coordinators.transactions, self.broker.coordinators.share):
            runtime.create_topic(ready)
        self.call = group_node.call

    def lead(self, topic, leader, *indexes):
        """Changes the leader of these partitions of a topic in the metadata; by default of all."""
        image = self.broker.image.topics_by_name[topic]
        for index in indexes or image.partitions:
            append(self.broker, PartitionChangeRecord(partition_id=index, topic_id=image.id, leader=leader))

    def fill(self):
        """Writes a record to each requested partition, so that loading it takes a turn of the loop."""
        assert self.node.commit(p0=7).topics[0].partitions[0].error_code == NONE
        requested = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
        made = self.call(requested, 4)
        assert made.error_code == NONE
        self.producer_id = made.producer_id
        error_code_of_marker = []
        self.broker.persister.initialize("g", {self.node.topic_id("t"): {0: 0}}, 0, error_code_of_marker.append)
        assert [each.error for each in error_code_of_marker[0].values()] == [None]

    def reload(self):
        for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE):
            self.lead(topic, NOBODY)
            self.lead(topic, HERE)

    def ask(self, request, version):
        """Returns the response to a request that is handled before the event loop turns."""
        return self.node.answer(self.node.send(request, version), version)


@pytest.fixture
def node(group_node):
    return Node(group_node)


def share_partition(node, request, **fields):
    topics = {each.__name__: each for each in vars(request).values() if isinstance(each, type)}
    (data,) = (each for name, each in topics.items() if name.endswith("Data") and name != "PartitionData")
    partition = data.PartitionData(partition=0, leader_epoch=0, **fields)
    return request(group_id="g", topics=[data(topic_id=node.node.topic_id("t"), partitions=[partition])])


def first(name):
    return lambda answer: getattr(answer, name)[0].error_code


def code(answer):
    return answer.error_code


def nested(*names):
    def find(answer):
        for name in names:
            answer = getattr(answer, name)[0]
        return getattr(answer, "error_code", None) if hasattr(answer, "error_code") else answer.partition_error_code

    return find


DESCRIBED = {"group_ids": ["g"], "include_authorized_operations": False}
TxnTopic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Deleted = OffsetDeleteRequest.OffsetDeleteRequestTopic
Committed = OffsetCommitRequest.OffsetCommitRequestTopic
P0 = Committed.OffsetCommitRequestPartition(partition_index=0, committed_offset=8, committed_metadata="")
Altered = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
RequestGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
RequestTopic = RequestGroup.DescribeShareGroupOffsetsRequestTopic

GROUPS = {
    "JoinGroup": (lambda node: node.node.send_join("g").response, None, code),
    "Heartbeat": (lambda node: HeartbeatRequest(group_id="g", member_id="m", generation_id=1), 4, code),
    "LeaveGroup": (lambda node: LeaveGroupRequest(group_id="g", member_id="m"), 2, code),
    "SyncGroup": (
        lambda node: SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[]),
        3,
        code,
    ),
    "DescribeGroups": (lambda node: DescribeGroupsRequest(groups=["g"]), 5, first("groups")),
    "DeleteGroups": (lambda node: DeleteGroupsRequest(groups_names=["g"]), 2, first("results")),
    "OffsetCommit": (
        lambda node: OffsetCommitRequest(group_id="g", topics=[Committed(name="t", partitions=[P0])]),
        8,
        nested("topics", "partitions"),
    ),
    "OffsetFetch": (lambda node: OffsetFetchRequest(group_id="g", topics=None), 7, code),
    "OffsetFetch of several": (
        lambda node: OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)]),
        9,
        first("groups"),
    ),
    "OffsetDelete": (
        lambda node: OffsetDeleteRequest(
            group_id="g",
            topics=[Deleted(name="t", partitions=[Deleted.OffsetDeleteRequestPartition(partition_index=0)])],
        ),
        0,
        code,
    ),
    "ConsumerGroupHeartbeat": (
        lambda node: ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1),
        1,
        code,
    ),
    "ConsumerGroupDescribe": (
        lambda node: ConsumerGroupDescribeRequest(**DESCRIBED),
        1,
        first("groups"),
    ),
    "ShareGroupHeartbeat": (
        lambda node: ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1),
        1,
        code,
    ),
    "ShareGroupDescribe": (
        lambda node: ShareGroupDescribeRequest(**DESCRIBED),
        1,
        first("groups"),
    ),
    "AlterShareGroupOffsets": (
        lambda node: AlterShareGroupOffsetsRequest(
            group_id="g",
            topics=[
                Altered(
                    topic_name="t",
                    partitions=[Altered.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)],
                )
            ],
        ),
        0,
        code,
    ),
    "DeleteShareGroupOffsets": (
        lambda node: DeleteShareGroupOffsetsRequest(
            group_id="g", topics=[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name="t")]
        ),
        0,
        code,
    ),
    "DescribeShareGroupOffsets": (
        lambda node: DescribeShareGroupOffsetsRequest(groups=[RequestGroup(group_id="g", topics=None)]),
        0,
        first("groups"),
    ),
    "StreamsGroupHeartbeat": (
        lambda node: StreamsGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=1, endpoint_information_epoch=0, rebalance_timeout_ms=-1
        ),
        0,
        code,
    ),
    "StreamsGroupDescribe": (
        lambda node: StreamsGroupDescribeRequest(**DESCRIBED),
        0,
        first("groups"),
    ),
}
TRANSACTIONS = {
    "InitProducerId": (
        lambda node: InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000),
        4,
        code,
    ),
    "AddPartitionsToTxn": (
        lambda node: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=PRODUCER.id,
            v3_and_below_producer_epoch=PRODUCER.epoch,
            v3_and_below_topics=[TxnTopic(name="t", partitions=[0])],
        ),
        3,
        nested("results_by_topic_v3_and_below", "results_by_partition"),
    ),
    "AddOffsetsToTxn": (
        lambda node: AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=PRODUCER.id, producer_epoch=PRODUCER.epoch, group_id="g"
        ),
        3,
        code,
    ),
    "EndTxn": (
        lambda node: EndTxnRequest(
            transactional_id="x", producer_id=PRODUCER.id, producer_epoch=PRODUCER.epoch, committed=True
        ),
        3,
        code,
    ),
    "DescribeTransactions": (
        lambda node: DescribeTransactionsRequest(transactional_ids=["x"]),
        0,
        first("transaction_states"),
    ),
}
SHARE_STATE = {
    "ReadShareGroupState": (
        lambda node: share_partition(node, ReadShareGroupStateRequest),
        0,
        nested("results", "partitions"),
    ),
    "WriteShareGroupState": (
        lambda node: share_partition(
            node, WriteShareGroupStateRequest, state_epoch=0, start_offset=0, state_batches=[]
        ),
        0,
        nested("results", "partitions"),
    ),
    "ReadShareGroupStateSummary": (
        lambda node: share_partition(node, ReadShareGroupStateSummaryRequest),
        0,
        nested("results", "partitions"),
    ),
}
ALL = GROUPS | TRANSACTIONS | SHARE_STATE
EACH = pytest.mark.parametrize("name", ALL)


def answered(node, name):
    make, version, find = ALL[name]
    request = make(node)
    return find(request if version is None else node.ask(request, version))


@EACH
def test_without_its_partition_a_node_is_not_the_coordinator(node, name):
    node.fill()
    for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE):
        node.lead(topic, NOBODY)
    assert answered(node, name) == ELSEWHERE


@EACH
def test_while_its_partition_is_loaded_a_client_tries_again(node, name):
    node.fill()
    node.reload()
    # Apache Kafka accepts a heartbeat, too (GroupCoordinatorService.heartbeat): the session begins with the loading.
    assert answered(node, name) == (NONE if name == "Heartbeat" else LOADING)
    node.node.clock.advance(0)
    assert answered(node, name) not in (LOADING, ELSEWHERE)


def test_what_is_listed_is_all_or_nothing(node):
    node.fill()
    node.reload()
    assert node.ask(ListGroupsRequest(), 4).error_code == LOADING
    listing = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    assert node.ask(listing, 0).error_code == LOADING
    node.node.clock.advance(0)
    assert [each.group_id for each in node.ask(ListGroupsRequest(), 4).groups] == ["g"]
    assert [each.transactional_id for each in node.ask(listing, 0).transaction_states] == ["x"]
    node.lead(CONSUMER_OFFSETS, NOBODY)
    node.lead(TRANSACTION_STATE, NOBODY)
    for answer in (node.ask(ListGroupsRequest(), 4), node.ask(listing, 0)):
        assert answer.error_code == NONE
    assert node.ask(ListGroupsRequest(), 4).groups == []


@pytest.mark.parametrize(("key_type", "key"), [(0, "g"), (1, "x"), (2, "g:AAAAAAAAAAAAAAAAAAAAYQ:0")])
def test_the_coordinator_is_who_leads_the_partition(node, key_type, key):
    def found():
        answer = node.ask(FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type), 6)
        return answer.coordinators[0].node_id

    node.fill()
    assert found() == HERE
    for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE):
        node.lead(topic, NOBODY)
    assert found() == -1
    for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE):
        node.lead(topic, HERE)
    assert found() == HERE, "it is loading"


# ---------------------------------------------------------------- one goes, others stay


def groups_of_two_partitions(node):
    """Returns two groups in different partitions, and their partitions."""
    where = node.broker.coordinators.groups.partition_of
    other = next(name for name in map(str, range(100)) if where(name) != where("g"))
    return ("g", where("g")), (other, where(other))


def test_a_member_that_waits_is_told_and_other_groups_go_on(node):
    (moved, index), (other, _) = groups_of_two_partitions(node)
    node.node.stable(moved)
    member_id = node.node.stable(other)
    joining = node.node.send_join(moved, version=3, name="second")
    assert joining.response is None
    node.lead(CONSUMER_OFFSETS, NOBODY, index)
    assert node.node.answer(joining, 3).error_code == ELSEWHERE
    beat = HeartbeatRequest(group_id=other, member_id=member_id, generation_id=1)
    assert node.ask(beat, 3).error_code == NONE
    assert [each.group_id for each in node.ask(ListGroupsRequest(), 4).groups] == [other]
    node.node.clock.advance(10)
    (described,) = node.ask(DescribeGroupsRequest(groups=[other]), 5).groups
    assert described.group_state == "Empty", "its session goes on, and ends"


def test_groups_come_back_with_their_members(node):
    (moved, index), _ = groups_of_two_partitions(node)
    node.node.commit(group_id=moved, p0=3)
    member_id = node.node.stable(moved)
    node.lead(CONSUMER_OFFSETS, NOBODY, index)
    node.node.clock.advance(60)  # no session expires meanwhile
    node.lead(CONSUMER_OFFSETS, HERE, index)
    node.node.clock.advance(0)
    (described,) = node.ask(DescribeGroupsRequest(groups=[moved]), 5).groups
    assert (described.group_state, [each.member_id for each in described.members]) == ("Stable", [member_id])
    node.node.clock.advance(9)
    assert node.ask(HeartbeatRequest(group_id=moved, member_id=member_id, generation_id=1), 3).error_code == NONE
    assert node.broker.groups.fetch_offsets(moved)["t"][0].offset == 3


def test_what_was_decided_is_completed_by_the_next_coordinator(node):
    """In the epoch of its election, so that markers of the earlier one are refused."""
    node.fill()
    identity = {"transactional_id": "x", "producer_id": node.producer_id, "producer_epoch": 0}
    added = TRANSACTIONS["AddPartitionsToTxn"][0](node)
    added.v3_and_below_producer_id = node.producer_id
    assert node.ask(added, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == NONE
    index = node.broker.coordinators.transactions.partition_of("x")
    t0 = node.broker.image.topics_by_name["t"]
    append(node.broker, PartitionChangeRecord(partition_id=0, topic_id=t0.id, leader=NOBODY))
    assert node.ask(EndTxnRequest(**identity, committed=True), 3).error_code == NONE
    node.lead(TRANSACTION_STATE, NOBODY, index)
    append(node.broker, PartitionChangeRecord(partition_id=0, topic_id=t0.id, leader=HERE))
    node.node.clock.advance(10)
    assert node.broker.partition("t", 0).log.log_end_offset == 0, "nobody is the coordinator"
    node.lead(TRANSACTION_STATE, HERE, index)
    node.node.clock.advance(0)
    assert node.broker.transactions.describe("x").state == "CompleteCommit"
    assert node.broker.partition("t", 0).log.log_end_offset == 1
    epoch = node.broker.partition(TRANSACTION_STATE, index).leader_epoch
    assert epoch > 0
    assert node.broker.partition("t", 0).log.producers.entries[node.producer_id].coordinator_epoch == epoch


def test_a_marker_waits_until_the_group_coordinator_is_loaded(node):
    node.fill()
    (_, index), _ = groups_of_two_partitions(node)
    node.lead(CONSUMER_OFFSETS, NOBODY, index)
    node.lead(CONSUMER_OFFSETS, HERE, index)
    Marker = WriteTxnMarkersRequest.WritableTxnMarker
    Topic = Marker.WritableTxnMarkerTopic
    request = WriteTxnMarkersRequest(
        markers=[
            Marker(
                producer_id=PRODUCER.id,
                producer_epoch=PRODUCER.epoch,
                coordinator_epoch=0,
                transaction_result=True,
                topics=[Topic(name=CONSUMER_OFFSETS, partition_indexes=[index])],
            )
        ]
    )

    def error_code_of_marker():
        (marker,) = node.ask(request, 1).markers
        return marker.topics[0].partitions[0].error_code

    assert error_code_of_marker() == NotLeaderOrFollower.code
    node.node.clock.advance(0)
    assert error_code_of_marker() == NONE


def test_topics_that_were_deleted_while_a_shard_was_loaded_are_noticed(node):
    node.fill()
    node.node.commit(topic="u", p0=1)
    node.reload()
    submitted(node.broker.controller, DeleteTopics([(None, node.node.topic_id("u"))]))
    node.node.clock.advance(0)
    assert node.broker.groups.fetch_offsets("g").keys() == {"t"}
