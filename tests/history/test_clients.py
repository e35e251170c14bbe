"""The clients of the workload, where they make up for their libraries. Knows nothing of histories."""

import time
from contextlib import suppress
from types import SimpleNamespace

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions
from kafka.producer.transaction_manager import TransactionManager
from kafka.structs import OffsetAndMetadata

from barnabas.testing import Broker
from tests.history.clients import confluent_kafka, kafka_python
from tests.history.clients.base import END, Lost

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


def test_a_join_that_is_forgotten_is_made_again_from_committed_offsets():
    with Broker() as broker:
        broker.create_topic("inputs", partitions=1)
        write(broker, b"1", b"2")
        consumer = kafka_python.Consumer(broker.bootstrap_servers, "g", committed=True)
        coordinator = consumer.inner._coordinator
        try:
            consumer.subscribe(["inputs"])
            poll_until(consumer, lambda: len(consumer.assignment()) == 1 and coordinator.stable())
            consumer.inner.seek(TopicPartition("inputs", 0), 2)
            add_partition(broker)
            consumer.inner._cluster.request_update()
            until(coordinator.need_rejoin)
            consumer.inner.poll(0)
            until(lambda: coordinator._join_task.is_done)
            assert not coordinator.need_rejoin()  # forgotten
            assert not coordinator.stable()
            given = poll_until(consumer, lambda: len(consumer.assignment()) == 2 and coordinator.stable())
            while len(given) < 2:
                given += poll_until(consumer, lambda: False)
            assert [each.offset for each in given] == [0, 1]
        finally:
            consumer.close()


def test_the_end_is_not_looked_up_after_another_assignment():
    with Broker() as broker:
        broker.create_topic("inputs", partitions=1)
        write(broker, b"1")
        consumer = confluent_kafka.Consumer(broker.bootstrap_servers, "g", committed=False)
        consumer.assign({"inputs-0": 0})
        assert poll_until(consumer, lambda: False)
        broker.faults.add(api="ListOffsets", error="NOT_LEADER_OR_FOLLOWER", first=1, delay=0.1)
        with suppress(Lost):
            consumer.assign({"inputs-0": END})
        consumer.assign({"inputs-0": 0})
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        offsets, until = [], time.monotonic() + 1.0  # librdkafka would ask again after half a second
        while time.monotonic() < until or len(offsets) < 50:
            producer.send("inputs", b"1").get(PATIENCE_S)
            offsets += [each.offset for each in consumer.poll(100, 0.01)]
        producer.close()
        consumer.close()
    assert offsets == list(range(len(offsets)))


def poll_until(consumer, condition):
    """Polls until a record comes, or the condition holds. Returns the records."""
    given = []
    until(lambda: given.extend(consumer.poll(1, 0.2)) or given or condition())
    return given


def write(broker, *values):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for value in values:
        producer.send("inputs", value).get(PATIENCE_S)
    producer.close()


def add_partition(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        admin.create_partitions({"inputs": NewPartitions(2)})
    finally:
        admin.close()
