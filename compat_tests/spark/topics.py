"""Topics for tests, and their contents read by a client other than Barnabas's.

Knows nothing of Spark.
"""

import contextlib
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.spark.generated import Made

READ_SECONDS = 60.0


def create(bootstrap: str, *topics: str, partitions: int = 4, **configs: str) -> None:
    """Makes topics without retention; in the names of configs ``_`` stands for ``.``."""
    config = {"retention.ms": "-1", **{name.replace("_", "."): value for name, value in configs.items()}}
    new = [NewTopic(topic, partitions, 1, config=config) for topic in topics]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(new).values():
        created.result(30)


def messages(bootstrap: str, topic: str) -> list[list[Message]]:
    """Returns the committed records of each partition, from start to end."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "check.crcs": True,
    }
    with contextlib.closing(Consumer(settings)) as consumer:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        assert partitions, f"there is no topic {topic}"
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        found: list[list[Message]] = [[] for _ in partitions]
        ended: set[int] = set()
        deadline = time.monotonic() + READ_SECONDS
        while len(ended) < len(partitions):
            assert time.monotonic() < deadline, f"{topic} does not come to its end: only {sorted(ended)} did"
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found[message.partition()].append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
    return found


def committed(bootstrap: str, topic: str) -> list[list[Made]]:
    """Returns the same, in the form in which they were made."""
    return [[as_made(message) for message in its] for its in messages(bootstrap, topic)]


def as_made(message: Message) -> Made:
    headers = tuple(message.headers() or ())
    return Made(message.topic(), message.partition(), message.key(), message.value(), headers, message.timestamp()[1])
