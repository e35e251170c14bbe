"""Counts what a leader appends to the partitions of one topic.

Knows nothing of partitions, nor of who reads the counts. Model: Apache Kafka's ``BrokerTopicMetrics``.
"""

from typing import Protocol


class Traffic(Protocol):
    """The counts of one topic. They only rise."""

    batches: int
    bytes_in: int
    messages_in: int  #: as offsets count them: of compressed batches, and of control batches, each record
