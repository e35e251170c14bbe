"""Due deadlines are applied before a request is handled, although the event loop serves ready sockets before timers.

``clock.skip`` advances the clock without a turn of the loop: the request comes first, then the timers.
"""

import pytest

from barnabas.errors import NONE, InvalidRecordState, NonEmptyGroup, ProducerFenced, UnknownMemberId
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.api_handlers.share_node import ACCEPT, ShareNode, acquired
from tests.submitting import ready

MS = 0.001


def delete(node):
    (result,) = node.call(DeleteGroupsRequest(groups_names=["g"]), 2).results
    return result.error_code


@pytest.mark.parametrize(("seconds", "code"), [(10 - MS, NonEmptyGroup.code), (10 + MS, NONE)])
def test_a_classic_members_session(group_node, seconds, code):
    group_node.stable()
    group_node.clock.skip(seconds)
    assert delete(group_node) == code


def test_a_member_whose_session_is_over_is_not_known(group_node):
    member_id = group_node.stable()
    group_node.clock.skip(10 + MS)
    beat = HeartbeatRequest(group_id="g", member_id=member_id, generation_id=1)
    assert group_node.call(beat, 3).error_code == UnknownMemberId.code


def test_groups_are_listed_as_they_are_by_then(group_node):
    group_node.stable("g")
    group_node.stable("h")
    group_node.clock.skip(10 + MS)
    found = {each.group_id: each.group_state for each in group_node.call(ListGroupsRequest(), 4).groups}
    assert found == {"g": "Empty", "h": "Empty"}


@pytest.mark.parametrize(("seconds", "code"), [(45 - MS, NonEmptyGroup.code), (45 + MS, NONE)])
def test_a_members_session_of_a_consumer_group(group_node, seconds, code):
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    epoch = group_node.call(beat, 1).member_epoch
    group_node.clock.skip(seconds)
    describe = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    (group,) = group_node.call(describe, 1).groups
    assert len(group.members) == (code != NONE)
    beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    assert group_node.call(beat, 1).error_code == (NONE if code != NONE else UnknownMemberId.code)
    assert delete(group_node) == code


@pytest.mark.parametrize(("seconds", "members"), [(45 - MS, 1), (45 + MS, 0)])
def test_a_members_session_of_a_share_group(group_node, seconds, members):
    beat = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=["t"])
    assert group_node.call(beat, 1).error_code == NONE
    group_node.clock.skip(seconds)
    describe = ShareGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    (group,) = group_node.call(describe, 1).groups
    assert len(group.members) == members


@pytest.fixture
def producer(group_node):
    """A producer id and epoch with an open transaction and a time-out of a second."""
    group_node.broker.coordinators.transactions.create_topic(ready)
    made = group_node.call(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4)
    Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch,
        v3_and_below_topics=[Topic(name="t", partitions=[0])],
    )
    (topic,) = group_node.call(added, 3).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == NONE
    return made.producer_id, made.producer_epoch


@pytest.mark.parametrize(("seconds", "code"), [(10 - MS, NONE), (10 + MS, ProducerFenced.code)])
def test_the_abort_of_a_transaction_that_takes_too_long(group_node, producer, seconds, code):
    """With the periodic check, every ten seconds, and not earlier."""
    group_node.clock.skip(seconds)
    request = EndTxnRequest(transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], committed=True)
    assert group_node.call(request, 3).error_code == code


def test_transactions_are_listed_as_they_are_by_then(group_node, producer):
    group_node.clock.skip(10 + MS)
    listing = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    (transaction,) = group_node.call(listing, 0).transaction_states
    assert transaction.transaction_state == "CompleteAbort"


@pytest.fixture
def share_node():
    node = ShareNode()
    node.produce(1)
    assert acquired(node.fetch(0, 0)) == {0: [(0, 0, 1)]}
    return node


@pytest.mark.parametrize(("seconds", "expected"), [(30 - MS, []), (30 + MS, [(0, 0, 2)])])
def test_a_lock_ends_before_the_next_fetch(share_node, seconds, expected):
    share_node.clock.skip(seconds)
    assert acquired(share_node.fetch(0, 0, member="bob", connection=2, max_wait_ms=0)).get(0, []) == expected


@pytest.mark.parametrize(("seconds", "code"), [(30 - MS, NONE), (30 + MS, InvalidRecordState.code)])
def test_a_lock_ends_before_the_next_acknowledgement(share_node, seconds, code):
    share_node.clock.skip(seconds)
    assert share_node.acknowledge(1, (0, 0, 0, [ACCEPT])) == {0: code}
