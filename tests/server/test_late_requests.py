"""A transactional request that arrives too late changes nothing, and its connection is closed."""

import pytest

from barnabas.errors import NONE, ConcurrentTransactions
from barnabas.testing import Broker
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.raw import Client


@pytest.fixture
def port():
    with Broker() as broker:
        broker.create_topic("t")
        yield int(broker.bootstrap_servers.rpartition(":")[2])


def begun(client):
    """Returns a producer id and epoch of the transactional id x."""
    client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 4)
    answer = client.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    assert answer.error_code == NONE
    return answer.producer_id, answer.producer_epoch


def add(client, producer):
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[topic],
    )
    return client.ask(request, 3)


def end(client, producer):
    request = EndTxnRequest(transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], committed=True)
    return client.ask(request, 4)


def test_a_late_end_of_the_older_generation_ends_no_later_transaction(port):
    with Client(port) as old, Client(port) as new:
        producer = begun(old)
        add(old, producer)
        assert end(new, producer).error_code == NONE  # the same end, repeated on another connection
        add(new, producer)
        assert end(old, producer) is None
        described = new.ask(DescribeTransactionsRequest(transactional_ids=["x"]), 0)
        assert [each.transaction_state for each in described.transaction_states] == ["Ongoing"]
        assert end(new, producer).error_code == NONE


def test_partitions_that_come_late_begin_no_transaction(port):
    with Client(port) as old, Client(port) as new:
        producer = begun(old)
        add(new, producer)
        assert end(new, producer).error_code == NONE
        assert add(old, producer) is None
        described = new.ask(DescribeTransactionsRequest(transactional_ids=["x"]), 0)
        assert [each.transaction_state for each in described.transaction_states] == ["CompleteCommit"]


def test_whoever_takes_over_may_have_been_connected_for_longer(port):
    with Client(port) as first, Client(port) as second:
        add(second, begun(second))
        taking_over = begun_until_accepted(first)
        add(first, taking_over)
        assert end(first, taking_over).error_code == NONE


def begun_until_accepted(client):
    """Begins a transaction; the abort of an open one causes an error first."""
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    while (answer := client.ask(request, 4)).error_code == ConcurrentTransactions.code:
        pass
    assert answer.error_code == NONE
    return answer.producer_id, answer.producer_epoch


def test_offsets_that_come_late_are_in_no_later_transaction(port):
    with Client(port) as old, Client(port) as new, Client(port) as coordinator:
        new.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        producer = begun(coordinator)
        for offset in (1, 2):
            add_group(coordinator, producer)
            assert commit_offset(new, producer, offset) == NONE
            assert end(coordinator, producer).error_code == NONE
        add_group(coordinator, producer)
        assert commit_offset(old, producer, 1) is None
        assert end(coordinator, producer).error_code == NONE
        assert committed(new) == 2


def add_group(client, producer):
    request = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    assert client.ask(request, 3).error_code == NONE


def commit_offset(client, producer, offset):
    """Returns the error code; None if the connection was closed instead."""
    Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    partition = Topic.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[Topic(name="t", partitions=[partition])],
    )
    answer = client.ask(request, 3)
    return None if answer is None else answer.topics[0].partitions[0].error_code


def committed(client):
    Topic = OffsetFetchRequest.OffsetFetchRequestTopic
    request = OffsetFetchRequest(group_id="g", topics=[Topic(name="t", partition_indexes=[0])])
    return client.ask(request, 7).topics[0].partitions[0].committed_offset
