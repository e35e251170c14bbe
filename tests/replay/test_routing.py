"""To which nodes requests of a recording go, and what is sent again after a leader has moved."""

import asyncio

import pytest

from barnabas.diagnosis import Address
from barnabas.faults.subjects import subjects_of
from barnabas.replay.routes import Routes
from barnabas.replay.routing import Router, put_together
from barnabas.replay.sessions import FIRST_EPOCH, LAST_EPOCH
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

NODES = {number: Address("host", number) for number in (1, 2, 3)}
ONE, TWO, THREE = NODES.values()
TOPIC_ID = bytes(15) + b"\x01"


class TheCluster:
    """Six partitions of ``orders``, led by 1, 2, 3, 1, 2, 3; keys are coordinated by the node that they end with."""

    def __init__(self):
        self.leaders = [1, 2, 3, 1, 2, 3]
        self.requests = []

    async def ask(self, address, request, version):
        self.requests.append(type(request).__name__)
        if not isinstance(request, MetadataRequest):
            return FindCoordinatorResponse(node_id=1, host="host", port=int(request.key[-1]))
        kinds = MetadataResponse.MetadataResponseTopic
        partitions = [
            kinds.MetadataResponsePartition(partition_index=at, leader_id=node, replica_nodes=[node], isr_nodes=[node])
            for at, node in enumerate(self.leaders)
        ]
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=each, host="host", port=each, rack=None) for each in NODES
        ]
        topics = [kinds(name="orders", is_internal=False, partitions=partitions)]
        return MetadataResponse(brokers=brokers, controller_id=1, topics=topics)


@pytest.fixture
def cluster():
    return TheCluster()


@pytest.fixture
def router(cluster):
    return Router(NODES.values(), Routes(ONE, cluster.ask), topic_name)


def topic_name(topic_id):
    return "orders" if bytes(topic_id) == TOPIC_ID else None


def route(router, request, *, connection=1, session_id=0):
    return asyncio.run(router.route(request, connection, ONE, session_id))


def again(router, part, *refused, session_id=0):
    router.forget()
    places = frozenset(("orders", each) for each in refused)
    return asyncio.run(router.again(part, places, 1, ONE, session_id))


def shape(parts):
    """By node: the partitions that are named."""
    return {
        part.address.port: sorted(partition for _, partition in subjects_of(part.request, topic_name).topics)
        for part in parts
    }


def produce(*partitions):
    data = [ProduceRequest.TopicProduceData.PartitionProduceData(index=each, records=b"") for each in partitions]
    topics = [ProduceRequest.TopicProduceData(name="orders", partition_data=data)]
    return ProduceRequest(transactional_id=None, acks=1, timeout_ms=1, topic_data=topics)


def fetch(*partitions, session_id=0, epoch=FIRST_EPOCH, forgotten=()):
    named = [
        FetchRequest.FetchTopic.FetchPartition(partition=each, fetch_offset=7, partition_max_bytes=9)
        for each in partitions
    ]
    return FetchRequest(
        max_wait_ms=1, min_bytes=1, session_id=session_id, session_epoch=epoch,
        topics=[FetchRequest.FetchTopic(topic="orders", partitions=named)] if partitions else [],
        forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="orders", partitions=list(forgotten))]
        if forgotten else [],
    )  # fmt: skip


def share(*partitions, epoch=FIRST_EPOCH, forgotten=(), acknowledged=()):
    kinds = ShareFetchRequest.FetchTopic
    batches = [kinds.FetchPartition.AcknowledgementBatch(first_offset=0, last_offset=1, acknowledge_types=[1])]
    named = [
        kinds.FetchPartition(partition_index=each, acknowledgement_batches=batches if each in acknowledged else [])
        for each in partitions
    ]
    return ShareFetchRequest(
        group_id="g", member_id="m", share_session_epoch=epoch, max_wait_ms=1, min_bytes=1, max_records=5, batch_size=5,
        topics=[kinds(topic_id=TOPIC_ID, partitions=named)] if partitions else [],
        forgotten_topics_data=[ShareFetchRequest.ForgottenTopic(topic_id=TOPIC_ID, partitions=list(forgotten))]
        if forgotten else [],
    )  # fmt: skip


def acknowledge(*partitions, epoch=1):
    kinds = ShareAcknowledgeRequest.AcknowledgeTopic
    batch = kinds.AcknowledgePartition.AcknowledgementBatch(first_offset=0, last_offset=1, acknowledge_types=[1])
    named = [kinds.AcknowledgePartition(partition_index=each, acknowledgement_batches=[batch]) for each in partitions]
    topics = [kinds(topic_id=TOPIC_ID, partitions=named)] if partitions else []
    return ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=epoch, topics=topics)


def sessions(parts):
    """By node: the partitions of its session."""
    return {part.address.port: sorted(partition for _, partition in part.session) for part in parts}


def epochs(parts):
    return {part.address.port: part.request.share_session_epoch for part in parts}


# ------------------------------------------------------------ where requests go


def test_what_leaders_answer_is_divided_among_them(router, cluster):
    assert shape(route(router, produce(0, 1, 3))) == {1: [0, 3], 2: [1]}
    assert shape(route(router, produce(2))) == {3: [2]}
    assert cluster.requests == ["MetadataRequest"]


def test_what_one_node_answers_is_the_request_itself(router):
    request = produce(1, 4)
    (part,) = route(router, request)
    assert part.address == TWO
    assert part.request is request


def test_groups_and_transactional_ids_go_to_their_coordinators(router):
    parts = route(router, DescribeGroupsRequest(groups=["g-1", "h-1", "g-3"]))
    assert {part.address.port: part.request.groups for part in parts} == {1: ["g-1", "h-1"], 3: ["g-3"]}
    (of_old,) = route(router, AddPartitionsToTxnRequest(v3_and_below_transactional_id="t-2"))
    assert of_old.address == TWO
    kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    several = [
        kind(transactional_id=each, producer_id=1, producer_epoch=0, topics=[]) for each in ("t-1", "t-2", "u-2")
    ]
    parts = route(router, AddPartitionsToTxnRequest(transactions=several))
    assert {part.address.port: [each.transactional_id for each in part.request.transactions] for part in parts} == {
        1: ["t-1"],
        2: ["t-2", "u-2"],
    }


def test_lists_go_to_every_node_and_the_rest_to_the_default(router):
    assert [part.address for part in route(router, ListGroupsRequest())] == [ONE, TWO, THREE]
    assert [part.address for part in route(router, MetadataRequest(topics=None))] == [ONE]


def test_a_cluster_of_one_node_divides_nothing(cluster):
    router = Router([ONE], Routes(ONE, cluster.ask), topic_name)
    for request in (produce(0, 1, 2), fetch(0, 1), ListGroupsRequest()):
        (part,) = route(router, request)
        assert part.request is request
    (part,) = route(router, share(0, 1))
    assert part.request == share(0, 1)
    assert not cluster.requests


def test_responses_are_put_together_by_topic():
    def response(partition, code=0):
        kind = ProduceResponse.TopicProduceResponse
        entry = kind.PartitionProduceResponse(index=partition, error_code=code, base_offset=partition)
        return ProduceResponse(responses=[kind(name="orders", partition_responses=[entry])])

    (topic,) = put_together([response(0), response(1, 3)]).responses
    assert [(each.index, each.error_code) for each in topic.partition_responses] == [(0, 0), (1, 3)]


# ------------------------------------------------------------ sessions of Fetch


def test_a_fetch_session_of_one_leader_remains_one(router):
    for epoch, request in enumerate((fetch(0), fetch(3, session_id=9, epoch=1), fetch(session_id=9, epoch=2))):
        (part,) = route(router, request, session_id=9)
        assert (part.address, part.request, part.request.session_epoch) == (ONE, request, epoch)


def test_a_fetch_session_of_several_leaders_becomes_fetches_of_all_its_partitions(router):
    assert shape(route(router, fetch(0), session_id=9)) == {1: [0]}
    parts = route(router, fetch(1, 2, session_id=9, epoch=1), session_id=9)
    assert shape(parts) == {1: [0], 2: [1], 3: [2]}
    assert {(part.request.session_id, part.request.session_epoch) for part in parts} == {(0, LAST_EPOCH)}
    assert shape(route(router, fetch(session_id=9, epoch=2, forgotten=[1]), session_id=9)) == {1: [0], 3: [2]}


def test_sessions_of_two_connections_are_two(router):
    route(router, fetch(0), connection=1, session_id=9)
    route(router, fetch(1), connection=2, session_id=9)
    assert shape(route(router, fetch(session_id=9, epoch=1), connection=2, session_id=9)) == {2: []}


def test_a_session_whose_leader_has_moved_is_left(router, cluster):
    route(router, fetch(0), session_id=9)
    cluster.leaders[0] = 3
    router.forget()
    (part,) = route(router, fetch(session_id=9, epoch=1), session_id=9)
    assert (part.address, part.request.session_epoch) == (THREE, LAST_EPOCH)
    assert shape([part]) == {3: [0]}


# ------------------------------------------------------------ sessions of ShareFetch


def test_a_share_session_is_one_with_each_leader(router):
    parts = route(router, share(0, 1))
    assert (shape(parts), epochs(parts)) == ({1: [0], 2: [1]}, {1: 0, 2: 0})
    parts = route(router, share(2, epoch=1))
    assert (shape(parts), epochs(parts)) == ({1: [], 2: [], 3: [2]}, {1: 1, 2: 1, 3: 0})
    parts = route(router, share(epoch=2))
    assert (shape(parts), epochs(parts)) == ({1: [], 2: [], 3: []}, {1: 2, 2: 2, 3: 1})


def test_each_node_answers_for_its_partitions_of_the_session(router):
    route(router, share(0, 1, 3))
    parts = route(router, share(epoch=1))
    assert {part.address.port: part.session for part in parts} == {
        1: {("orders", 0), ("orders", 3)},
        2: {("orders", 1)},
    }
    parts = route(router, share(epoch=2, forgotten=[3]))
    assert sessions(parts) == {1: [0], 2: [1]}


def test_acknowledgements_go_to_the_nodes_of_their_partitions_only(router):
    route(router, share(0, 1))
    parts = route(router, acknowledge(1))
    assert (shape(parts), epochs(parts)) == ({2: [1]}, {2: 1})
    parts = route(router, share(epoch=2))
    assert epochs(parts) == {1: 1, 2: 2}


def test_a_share_session_ends_at_all_its_nodes_and_may_begin_again(router):
    route(router, share(0, 1))
    assert epochs(route(router, acknowledge(epoch=LAST_EPOCH))) == {1: LAST_EPOCH, 2: LAST_EPOCH}
    assert epochs(route(router, share(2))) == {3: 0}
    assert epochs(route(router, share(0))) == {1: 0}


# ------------------------------------------------------------ again, after a leader has moved


def test_only_refused_partitions_are_sent_again_to_the_leader_of_now(router, cluster):
    part, _ = route(router, produce(0, 1, 3))
    cluster.leaders[3] = 3
    assert shape(again(router, part, 3)) == {3: [3]}


def test_what_is_refused_on_the_only_node_is_sent_to_it_again(cluster):
    router = Router([ONE], Routes(ONE, cluster.ask), topic_name)
    (part,) = route(router, produce(0, 1, 3))
    assert shape(again(router, part, 1)) == {1: [1]}


def test_a_request_without_an_answer_of_its_coordinator_is_routed_anew(router):
    (part,) = route(router, DescribeGroupsRequest(groups=["g-2"]))
    assert again(router, part) == [part]


def test_refused_partitions_of_a_fetch_session_are_fetched_without_it(router, cluster):
    route(router, fetch(0, 3), session_id=9)
    (part,) = route(router, fetch(session_id=9, epoch=1), session_id=9)
    cluster.leaders[3] = 2
    (new,) = again(router, part, 3, session_id=9)
    assert (new.address, new.request.session_id, new.request.session_epoch) == (TWO, 0, LAST_EPOCH)
    assert shape([new]) == {2: [3]}
    assert new.request.topics[0].partitions[0].fetch_offset == 7


def test_what_is_sent_again_names_no_leader_epoch(router):
    kinds = ListOffsetsRequest.ListOffsetsTopic
    named = [
        kinds.ListOffsetsPartition(partition_index=each, current_leader_epoch=4, timestamp=-1) for each in (0, 1, 3)
    ]
    request = ListOffsetsRequest(replica_id=-1, topics=[kinds(name="orders", partitions=named)])
    part, _ = route(router, request)
    (new,) = again(router, part, 3)
    (topic,) = new.request.topics
    assert [(each.partition_index, each.current_leader_epoch) for each in topic.partitions] == [(3, -1)]
    assert [each.current_leader_epoch for each in named] == [4, 4, 4]


def test_a_fetch_session_that_its_node_has_no_more_is_left(router):
    route(router, fetch(0, 3), session_id=9)
    (part,) = route(router, fetch(session_id=9, epoch=1), session_id=9)
    (new,) = again(router, part, session_id=9)
    assert (shape([new]), new.request.session_epoch) == ({1: [0, 3]}, LAST_EPOCH)
    (next_one,) = route(router, fetch(session_id=9, epoch=2), session_id=9)
    assert (shape([next_one]), next_one.request.session_epoch) == ({1: [0, 3]}, LAST_EPOCH)


def test_refused_partitions_of_a_share_session_move_to_the_leader_of_now(router, cluster):
    part, _ = route(router, share(0, 1, 3, acknowledged=[3]))
    cluster.leaders[3] = 2
    new = again(router, part, 3)
    assert (shape(new), epochs(new)) == ({2: [3]}, {2: 1})
    assert not new[0].request.topics[0].partitions[0].acknowledgement_batches
    parts = route(router, share(epoch=1))
    assert epochs(parts) == {1: 1, 2: 2}
    forgotten = {part.address.port: [each.partitions for each in part.request.forgotten_topics_data] for part in parts}
    assert forgotten == {1: [[3]], 2: []}
    assert {part.address.port: part.session for part in parts} == {
        1: {("orders", 0)},
        2: {("orders", 1), ("orders", 3)},
    }


def test_refused_partitions_of_a_share_session_with_the_same_leader_have_its_next_epoch(router):
    part, _ = route(router, share(0, 1, 3))
    new = again(router, part, 3)
    assert (shape(new), epochs(new)) == ({1: [3]}, {1: 1})


def test_acknowledgements_of_a_leader_that_has_moved_are_in_vain(router, cluster):
    route(router, share(0, 1))
    (part,) = route(router, acknowledge(1))
    cluster.leaders[1] = 3
    assert again(router, part, 1) == []


def test_a_share_session_of_the_only_node_is_not_disturbed(cluster):
    router = Router([ONE], Routes(ONE, cluster.ask), topic_name)
    (part,) = route(router, share(0, 1))
    assert again(router, part, 1) == []


# ------------------------------------------------------------ share sessions that come together at one node


def named_and_forgotten(part):
    """The partitions that a request names, and those that it forgets."""
    named = [each.partition_index for topic in part.request.topics for each in topic.partitions]
    return sorted(named), sorted(each for topic in part.request.forgotten_topics_data for each in topic.partitions)


@pytest.fixture
def alone(cluster):
    return Router([ONE], Routes(ONE, cluster.ask), topic_name)


def test_recorded_sessions_of_a_member_are_one_at_a_node(alone):
    (first,) = route(alone, share(0, 1), connection=1)
    assert not alone.shares_session(share(0, 1), 1)
    (second,) = route(alone, share(2), connection=2)
    assert alone.shares_session(share(2), 2)
    (third,) = route(alone, share(epoch=1), connection=1)
    assert [each.request.share_session_epoch for each in (first, second, third)] == [0, 1, 2]
    assert [*map(named_and_forgotten, (first, second, third))] == [([0, 1], []), ([2], [0, 1]), ([0, 1], [2])]
    assert sessions([third]) == {1: [0, 1]}


def test_acknowledgements_of_both_have_epochs_of_the_one(alone):
    route(alone, share(0), connection=1)
    route(alone, share(1), connection=2)
    assert epochs(route(alone, acknowledge(0), connection=1)) == {1: 2}
    assert epochs(route(alone, acknowledge(1), connection=2)) == {1: 3}


def test_the_one_ends_with_the_last_of_them(alone):
    route(alone, share(0), connection=1)
    route(alone, share(1), connection=2)
    assert epochs(route(alone, acknowledge(epoch=LAST_EPOCH), connection=1)) == {1: 2}
    assert alone.shares_session(share(1, epoch=1), 2) is False
    assert epochs(route(alone, acknowledge(epoch=LAST_EPOCH), connection=2)) == {1: LAST_EPOCH}
    assert epochs(route(alone, share(0), connection=1)) == {1: 0}


def test_the_last_fetch_of_one_of_them_leaves_its_partitions(alone):
    route(alone, share(0), connection=1)
    route(alone, share(1), connection=2)
    (last,) = route(alone, share(epoch=LAST_EPOCH), connection=2)
    assert (last.request.share_session_epoch, named_and_forgotten(last)) == (2, ([], [1]))


def test_a_session_that_begins_anew_is_not_joined_to_the_old_one(alone):
    route(alone, share(0, 1), connection=1)
    (part,) = route(alone, share(2), connection=1)
    assert (part.request.share_session_epoch, named_and_forgotten(part)) == (0, ([2], []))


# ------------------------------------------------------------ further fetches


def test_a_further_fetch_goes_where_records_are_missing(router):
    parts = route(router, share(0, 1, acknowledged=[0]))
    further = router.further(share(0, 1, acknowledged=[0]), 1, parts, {("orders", 1)})
    assert (shape(further), epochs(further), sessions(further)) == ({2: []}, {2: 1}, {2: [1]})
    assert [part.is_further for part in (*parts, *further)] == [False, False, True]
    assert epochs(route(router, share(epoch=1))) == {1: 1, 2: 2}


def test_a_further_fetch_is_of_its_own_recorded_session(alone):
    parts = route(alone, share(0), connection=1)
    route(alone, share(1), connection=2)
    (part,) = alone.further(share(0), 1, parts, {("orders", 0)})
    assert (part.request.share_session_epoch, named_and_forgotten(part)) == (2, ([0], [1]))


def test_a_session_that_has_ended_fetches_no_further(router):
    parts = route(router, share(0))
    route(router, share(epoch=LAST_EPOCH))
    assert router.further(share(epoch=LAST_EPOCH), 1, parts, {("orders", 0)}) == []


def test_responses_of_further_fetches_are_one_with_the_first():
    kind = ShareFetchResponse.ShareFetchableTopicResponse

    def response(records):
        leader = kind.PartitionData.LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
        each = kind.PartitionData(
            partition_index=0, acknowledge_error_code=0, current_leader=leader, records=records, acquired_records=[]
        )
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=1, responses=[kind(topic_id=TOPIC_ID, partitions=[each])], node_endpoints=[]
        )

    for pair in ((b"", b"ab"), (None, b"ab"), (b"ab", None), (b"a", b"b")):
        (topic,) = put_together([response(each) for each in pair]).responses
        assert [each.records for each in topic.partitions] == [b"ab"]
