"""Counts the appends of a leader to the partitions of one topic.

Knows nothing of logs, nor of the readers of the counts. Apache Kafka's ``BrokerTopicMetrics``.
"""

from collections.abc import Callable
from typing import Protocol

from barnabas.records.batch import RecordBatch


class Traffic(Protocol):
    """The counts of one topic."""

    def appended(self, batch: RecordBatch) -> None:
        """Counts a batch, and its records as offsets count them; a control batch has one."""


class Appending(Protocol):
    """A partition with counted appends."""

    topic: str
    traffic: Traffic | None


class FirstAppend:
    """Stands for the counts of a topic until its partition appends a batch.

    The number of counted topics is limited, and topics without appends are not counted.
    """

    __slots__ = ("_partition", "_traffic_of")

    def __init__(self, partition: Appending, traffic_of: Callable[[str], Traffic]) -> None:
        self._partition = partition
        self._traffic_of = traffic_of

    def appended(self, batch: RecordBatch) -> None:
        """Counts a batch. The partition has the counts of its topic from now on."""
        traffic = self._partition.traffic = self._traffic_of(self._partition.topic)
        traffic.appended(batch)
