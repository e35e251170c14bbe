"""A broker in memory compacts as one on a disk does: what tests of a program see is what the program will see."""

import time

import kafka

import barnabas.testing

SECONDS = 60


def await_small(broker, topic, count):
    deadline = time.monotonic() + SECONDS
    while len(found := broker.records(topic)) > count:
        assert time.monotonic() < deadline, f"there still are {len(found)} records"
        time.sleep(0.01)
    return found


def test_a_compacted_topic_in_memory():
    with barnabas.testing.Broker(log_cleaner_backoff_ms=20) as broker:
        broker.create_topic(
            "latest",
            configs={
                "cleanup.policy": "compact",
                "internal.segment.bytes": 2000,
                "min.cleanable.dirty.ratio": 0.01,
                "delete.retention.ms": 0,
            },
        )
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=0, batch_size=500)
        for number in range(500):
            producer.send("latest", key=b"%d" % (number % 5), value=b"value %d" % number)
        producer.send("latest", key=b"0", value=None)
        for number in range(200):
            producer.send("latest", key=b"%d" % (1 + number % 4), value=b"later %d" % number)
        producer.close()
        found = await_small(broker, "latest", 150)
    latest = {record.key: record.value for record in found}
    assert latest.pop(b"0", None) is None
    assert latest == {b"%d" % (1 + number % 4): b"later %d" % number for number in range(200)}
    assert [record.offset for record in found] == sorted(record.offset for record in found)


def test_a_policy_that_is_changed_while_the_broker_runs():
    with barnabas.testing.Broker(log_cleaner_backoff_ms=20) as broker:
        broker.create_topic("latest", configs={"internal.segment.bytes": 2000, "min.cleanable.dirty.ratio": 0.01})
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=0, batch_size=500)
        for number in range(500):
            producer.send("latest", key=b"%d" % (number % 5), value=b"value %d" % number)
        producer.close()
        assert len(broker.records("latest")) == 500
        admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        kind = kafka.admin.ConfigResourceType.TOPIC
        admin.alter_configs([kafka.admin.ConfigResource(kind, "latest", {"cleanup.policy": "compact"})])
        admin.close()
        found = await_small(broker, "latest", 150)
        assert [record.value for record in found][-5:] == [b"value %d" % number for number in range(495, 500)]
