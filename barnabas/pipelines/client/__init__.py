"""The client of a Kafka cluster in a Spark worker: metadata, offsets, reads and writes.

Connections, TLS, SASL and the encoding of requests are kafka-python's. Knows nothing of Spark.
"""

from typing import NamedTuple

EARLIEST, LATEST = -2, -1
"""Denote the first offset of a partition, and the offset of its next record (KIP-79)."""

NEW_TOPIC_PATIENCE = 2.0
"""The time in seconds after which all brokers know a new topic."""


class TopicPartition(NamedTuple):
    """A partition. Equals kafka-python's class and has the same hash; importing kafka-python for it would take a
    while.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
