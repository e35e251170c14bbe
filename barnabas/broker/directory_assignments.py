"""Tells the controller in which log directories the replicas of this broker are (KIP-858).

Knows nothing of logs. Apache Kafka's ``AssignmentsManager``.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from barnabas.broker.lifecycle import Channel
from barnabas.errors import KafkaError
from barnabas.peers.peers import error_of
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

logger = logging.getLogger(__name__)

MAX_ASSIGNMENTS = 2250
"""The most partitions in one request (``AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST``)."""

Directory = AssignReplicasToDirsRequest.DirectoryData
Topic = Directory.TopicData
Partition = Topic.PartitionData


class Assignment(NamedTuple):
    """The directory that a replica is in, or will be in."""

    topic_id: bytes
    partition: int
    directory_id: bytes


Done = Callable[[KafkaError | None], object]
"""Called with the first error, or None, once the controller has answered for all assignments of a call."""


class DirectoryAssignments:
    """The assignments of one broker. ``epoch`` returns its broker epoch."""

    def __init__(self, node_id: int, channel: Channel, epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._channel = channel
        self._epoch = epoch

    def report(self, assignments: Sequence[Assignment]) -> None:
        """Reports the assignments, in as few requests as possible, and logs those that the controller refuses."""
        for at in range(0, len(assignments), MAX_ASSIGNMENTS):
            self.assign(assignments[at : at + MAX_ASSIGNMENTS], _log)

    def assign(self, assignments: Sequence[Assignment], done: Done) -> None:
        """Reports up to :data:`MAX_ASSIGNMENTS` assignments."""
        request = AssignReplicasToDirsRequest(
            broker_id=self._node_id, broker_epoch=self._epoch(), directories=_by_directory(assignments)
        )
        self._channel.send(request, partial(_answered, done))


def _by_directory(assignments: Sequence[Assignment]) -> list[Directory]:
    found: dict[bytes, dict[bytes, list[int]]] = {}
    for topic_id, partition, directory_id in assignments:
        found.setdefault(directory_id, {}).setdefault(topic_id, []).append(partition)
    return [
        Directory(
            id=directory_id,
            topics=[
                Topic(topic_id=topic_id, partitions=[Partition(partition_index=index) for index in indexes])
                for topic_id, indexes in topics.items()
            ],
        )
        for directory_id, topics in found.items()
    ]


def _answered(done: Done, response: AssignReplicasToDirsResponse | None, error: KafkaError | None) -> None:
    done(error if response is None else next(_errors(response), None))


def _errors(response: AssignReplicasToDirsResponse) -> Iterator[KafkaError]:
    codes = [response.error_code]
    codes += [each.error_code for of in response.directories for topic in of.topics for each in topic.partitions]
    return (error for code in codes if (error := error_of(code)) is not None)


def _log(error: KafkaError | None) -> None:
    if error is not None:
        logger.warning("The controller does not record the log directories of partitions: %s", error)
