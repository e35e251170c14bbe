"""AlterReplicaLogDirs (API key 34): moves replicas to other log directories of this broker (KIP-113).

Knows nothing of how a log is moved. Rules of Apache Kafka's ``ReplicaManager.alterReplicaLogDirs``.
"""

import os
from collections.abc import Mapping

from barnabas.api_handlers.by_topic import by_topic
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.broker import Broker
from barnabas.errors import (
    InvalidReplicaAssignment,
    InvalidTopicException,
    KafkaError,
    KafkaStorageError,
    LogDirNotFound,
    NotLeaderOrFollower,
    ReplicaNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.log.log_directory import LogDirectory
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

Result = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
PartitionResult = Result.AlterReplicaLogDirPartitionResult

LONGEST_NAME = 255 - len(".0123456789abcdef0123456789abcdef-future")
"""The limit of ``topic-partition``: with the suffix of a future log it must still be a valid directory name."""


@api(AlterReplicaLogDirsRequest)
def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    """Begins to move each partition. Of two directories for the same partition the last one counts."""
    broker = context.broker
    directories = {
        os.path.abspath(each.path): each  # noqa: PTH100  (pathlib would take 3 ms of the start)
        for each in broker.log_manager.directories
    }
    paths = {
        (topic.name, index): each.path for each in request.dirs for topic in each.topics for index in topic.partitions
    }
    results = {key: moved(*key, path, directories, broker) for key, path in paths.items()}
    return AlterReplicaLogDirsResponse(
        results=[Result(topic_name=topic, partitions=partitions) for topic, partitions in by_topic(results)]
    )


@error_shape(AlterReplicaLogDirsRequest)
def failed(request: AlterReplicaLogDirsRequest, error: KafkaError, version: int) -> AlterReplicaLogDirsResponse:
    """Returns the error for each partition. The request lists topics by directory, the response does not."""
    return AlterReplicaLogDirsResponse(
        results=[
            Result(
                topic_name=topic.name,
                partitions=[
                    PartitionResult(partition_index=index, error_code=error.code) for index in topic.partitions
                ],
            )
            for each in request.dirs
            for topic in each.topics
        ]
    )


def moved(
    topic: str, index: int, path: str, directories: Mapping[str, LogDirectory], broker: Broker
) -> PartitionResult:
    try:
        if len(f"{topic}-{index}") > LONGEST_NAME:
            raise InvalidTopicException("The topic name is too long.")
        directory = directories.get(path)
        if directory is None:
            raise LogDirNotFound
        if directory.offline is not None:
            raise KafkaStorageError
        if directory.is_cordoned:
            raise InvalidReplicaAssignment
        move(topic, index, directory, broker)
    except KafkaError as error:
        return PartitionResult(partition_index=index, error_code=error.code)
    return PartitionResult(partition_index=index)


def move(topic: str, index: int, directory: LogDirectory, broker: Broker) -> None:
    """Begins the move. A partition that does not exist yet will be created in that directory."""
    manager = broker.log_manager
    try:
        partition = broker.partition(topic, index)
    except (UnknownTopicOrPartition, NotLeaderOrFollower) as error:
        manager.preferred_directories[topic, index] = directory
        if isinstance(error, NotLeaderOrFollower):
            raise ReplicaNotAvailable from None
        raise
    if partition.log.is_offline:
        raise KafkaStorageError
    manager.moves.start(partition.log, directory)
