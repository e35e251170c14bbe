"""The clients of the workload, where they do other than their libraries. Knows no broker."""

from types import SimpleNamespace

from kafka import TopicPartition
from kafka.producer.transaction_manager import TransactionManager
from kafka.structs import OffsetAndMetadata

from tests.history.clients import kafka_python


def test_offsets_of_an_aborted_transaction_are_not_sent_in_the_next_one():
    manager = TransactionManager(transactional_id="x", transaction_timeout_ms=1000)
    manager._pending_txn_offset_commits[TopicPartition("inputs", 0)] = OffsetAndMetadata(9336, "", -1)
    producer = kafka_python.Producer("127.0.0.1:1", "x")
    producer.inner = SimpleNamespace(abort_transaction=lambda: None, _transaction_manager=manager)
    producer.abort()
    assert not manager._test_has_pending_offset_commits()
