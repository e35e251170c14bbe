"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn on a whole broker in memory: versions, errors and effects."""

import pytest

from barnabas.errors import (
    NONE,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    OperationNotAttempted,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionAbortable,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from tests.submitting import ready

Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction


@pytest.fixture
def node(group_node):
    group_node.broker.coordinators.transactions.create_topic(ready)
    return group_node


@pytest.fixture
def producer(node):
    return init(node)


def init(node, version=5, transactional_id="x", **fields):
    """Returns producer id and epoch."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000, **fields)
    answer = node.call(request, version)
    assert answer.error_code == NONE
    return answer.producer_id, answer.producer_epoch


def add(node, producer, version=3, transactional_id="x", **topics):
    """Returns error codes by topic and partition, of one transaction."""
    requested = [Topic(name=name, partitions=partitions) for name, partitions in topics.items()]
    if version < 4:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=requested,
        )
        return codes(node.call(request, version).results_by_topic_v3_and_below)
    request = AddPartitionsToTxnRequest(transactions=[transaction(producer, requested, transactional_id)])
    (result,) = node.call(request, version).results_by_transaction
    return codes(result.topic_results)


def transaction(producer, topics, transactional_id="x", *, verify_only=False):
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=topics,
    )


def codes(results):
    return {
        (topic.name, each.partition_index): each.partition_error_code
        for topic in results
        for each in topic.results_by_partition
    }


def end(node, producer, version=5, *, committed=True):
    request = EndTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], committed=committed
    )
    return node.call(request, version)


@pytest.mark.parametrize("version", range(6))
def test_partitions_are_added(node, producer, version):
    assert add(node, producer, version, t=[0, 2], u=[0]) == {("t", 0): NONE, ("t", 2): NONE, ("u", 0): NONE}
    described = node.broker.transactions.describe("x")
    assert sorted(described.partitions) == [("t", 0), ("t", 2), ("u", 0)]


@pytest.mark.parametrize("version", range(6))
def test_one_that_is_not_there_spoils_them_all(node, producer, version):
    unknown, others = UnknownTopicOrPartition.code, OperationNotAttempted.code
    found = add(node, producer, version, t=[0, 3], none=[0])
    assert found == {("t", 0): others, ("t", 3): unknown, ("none", 0): unknown}
    assert node.broker.transactions.describe("x").state == "Empty"


@pytest.mark.parametrize("version", range(6))
def test_the_broker_s_own_topics_are_for_brokers_to_add(node, producer, version):
    others = NONE if version >= 4 else OperationNotAttempted.code
    refused = NONE if version >= 4 else TopicAuthorizationFailed.code
    found = add(node, producer, version, t=[0], __transaction_state=[1])
    assert found == {("t", 0): others, ("__transaction_state", 1): refused}


def test_duplicate_partitions_have_duplicate_results(node, producer):
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[Topic(name="t", partitions=[0, 0]), Topic(name="u", partitions=[])],
    )
    results = node.call(request, 3).results_by_topic_v3_and_below
    found = [(each.name, [one.partition_index for one in each.results_by_partition]) for each in results]
    assert found == [("t", [0, 0]), ("u", [])]


@pytest.mark.parametrize("version", range(6))
def test_a_producer_that_was_fenced(node, producer, version):
    fenced = (ProducerFenced if version >= 2 else InvalidProducerEpoch).code
    init(node)
    assert add(node, producer, version, t=[0]) == {("t", 0): fenced}
    assert end(node, producer, version).error_code == fenced
    if version <= 4:
        request = AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        )
        assert node.call(request, version).error_code == fenced


def test_several_transactions_at_once(node, producer):
    other = init(node, transactional_id="y")
    topics = [Topic(name="t", partitions=[0])]
    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction(producer, topics),
            transaction(other, topics, "y"),
            transaction((other[0] + 1, 0), topics, "z"),
        ]
    )
    found = {each.transactional_id: codes(each.topic_results) for each in node.call(request, 5).results_by_transaction}
    assert found == {
        "x": {("t", 0): NONE},
        "y": {("t", 0): NONE},
        "z": {("t", 0): InvalidProducerIdMapping.code},
    }


def test_no_transactions_at_all(node):
    answer = node.call(AddPartitionsToTxnRequest(transactions=[]), 5)
    assert (answer.error_code, answer.results_by_transaction) == (NONE, [])


def test_verifying_adds_nothing(node, producer):
    add(node, producer, t=[0])
    topics = [Topic(name="t", partitions=[0, 1])]
    request = AddPartitionsToTxnRequest(transactions=[transaction(producer, topics, verify_only=True)])
    (result,) = node.call(request, 5).results_by_transaction
    assert codes(result.topic_results) == {("t", 0): NONE, ("t", 1): TransactionAbortable.code}
    assert list(node.broker.transactions.describe("x").partitions) == [("t", 0)]


@pytest.mark.parametrize("version", range(5))
def test_a_group_is_its_partition(node, producer, version):
    request = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    assert node.call(request, version).error_code == NONE
    index = node.broker.coordinators.groups.partition_of("g")
    assert list(node.broker.transactions.describe("x").partitions) == [("__consumer_offsets", index)]


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False])
def test_an_end(node, producer, version, committed):
    add(node, producer, min(version, 3) if version < 5 else 5, t=[0])
    answer = end(node, producer, version, committed=committed)
    assert answer.error_code == NONE
    if version >= 5:
        assert (answer.producer_id, answer.producer_epoch) == (producer[0], producer[1] + 1)
    state = node.broker.transactions.describe("x").state
    assert state == ("CompleteCommit" if committed else "CompleteAbort")


def test_an_end_of_nothing(node, producer):
    for version in range(5):
        for committed in (True, False):
            assert end(node, producer, version, committed=committed).error_code == InvalidTxnState.code
    assert end(node, producer, 5).error_code == InvalidTxnState.code
    answer = end(node, producer, 5, committed=False)
    assert (answer.error_code, answer.producer_epoch) == (NONE, producer[1] + 1)
