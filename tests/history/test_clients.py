"""The clients of the workload, where they make up for their libraries. Knows nothing of histories."""

import time
from types import SimpleNamespace

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewPartitions
from kafka.producer.transaction_manager import TransactionManager
from kafka.structs import OffsetAndMetadata

from barnabas.testing import Broker
from tests.history.clients import kafka_python

PATIENCE_S = 30.0


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_offsets_of_an_aborted_transaction_are_not_sent_in_the_next_one():
    manager = TransactionManager(transactional_id="x", transaction_timeout_ms=1000)
    manager._pending_txn_offset_commits[TopicPartition("inputs", 0)] = OffsetAndMetadata(9336, "", -1)
    producer = kafka_python.Producer("127.0.0.1:1", "x")
    producer.inner = SimpleNamespace(abort_transaction=lambda: None, _transaction_manager=manager)
    producer.abort()
    assert not manager._test_has_pending_offset_commits()


def test_a_join_that_is_forgotten_is_made_again():
    with Broker() as broker:
        broker.create_topic("inputs", partitions=1)
        consumer = kafka_python.Consumer(broker.bootstrap_servers, "g", committed=True)
        coordinator = consumer.inner._coordinator
        try:
            consumer.subscribe(["inputs"])
            poll_until(consumer, lambda: len(consumer.assignment()) == 1 and coordinator.stable())
            add_partition(broker)
            consumer.inner._cluster.request_update()
            until(coordinator.need_rejoin)
            consumer.inner.poll(0)
            until(lambda: coordinator._join_task.is_done)
            assert not coordinator.need_rejoin()  # forgotten
            assert not coordinator.stable()
            poll_until(consumer, lambda: len(consumer.assignment()) == 2 and coordinator.stable())
        finally:
            consumer.close()


def poll_until(consumer, condition):
    until(lambda: consumer.poll(1, 0.2) or condition())


def add_partition(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        admin.create_partitions({"inputs": NewPartitions(2)})
    finally:
        admin.close()
