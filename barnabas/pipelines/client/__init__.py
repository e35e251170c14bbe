"""The client of a Kafka cluster in a Spark worker: who leads which partition, what it holds, how to read and write it.

Connections, TLS, SASL and the encoding of requests are kafka-python's. Knows nothing of Spark.
"""

from typing import NamedTuple

EARLIEST, LATEST = -2, -1
"""Stand for the first offset of a partition, and for the offset of its next record (KIP-79)."""

NEW_TOPIC_PATIENCE = 2.0
"""Seconds until every broker knows a topic that was just created."""


class TopicPartition(NamedTuple):
    """A partition. Equals kafka-python's class and has the same hash; importing kafka-python for it would take a
    while.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
