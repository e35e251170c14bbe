"""A cluster as a worker of Spark sees it: where partitions are led, what they hold, how to read and write them.

Connections, TLS, SASL and the encoding of requests are kafka-python's. Knows nothing of Spark.
"""

from typing import NamedTuple

EARLIEST, LATEST = -2, -1
"""Instead of an offset or a time: the first offset that there is, the one that the next record will get (KIP-79)."""

NEW_TOPIC_PATIENCE = 2.0
"""Seconds in which a topic that was just created gets known to every broker."""


class TopicPartition(NamedTuple):
    """As kafka-python's, equal to it and hashed like it; here because importing kafka-python takes a while."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
