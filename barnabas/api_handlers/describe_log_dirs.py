"""DescribeLogDirs (API key 35): the log directories, their disk space, and the sizes of their logs (KIP-113).

Knows nothing of segments and indexes: the size of a log is that of its records.
"""

import os
from collections.abc import Collection, Mapping

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import KafkaError, KafkaStorageError
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.log.systems import Space
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = Result.DescribeLogDirsTopic
Partition = Topic.DescribeLogDirsPartition

TopicPartition = tuple[str, int]
HAS_ERROR_CODE = 3
"""The first version whose response has an error code of its own."""

UNKNOWN_SPACE = Space(-1, -1)


@api(DescribeLogDirsRequest)
def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    """Describes all log directories, with the requested logs, or all. An offline directory has only its error."""
    manager = context.broker.log_manager
    logs = {key: log for key, log in manager.logs.items() if key[0] != CLUSTER_METADATA}
    requested: Collection[TopicPartition] = logs
    if request.topics is not None:
        requested = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return DescribeLogDirsResponse(
        results=[
            describe(directory, logs, manager.registry.future_logs_in(directory), requested)
            for directory in manager.directories
        ]
    )


@error_shape(DescribeLogDirsRequest)
def failed(request: DescribeLogDirsRequest, error: KafkaError, version: int) -> DescribeLogDirsResponse:
    """Before version 3 the error is in a directory without a name. Apache Kafka returns no error there."""
    if version >= HAS_ERROR_CODE:
        return DescribeLogDirsResponse(error_code=error.code, results=[])
    return DescribeLogDirsResponse(results=[Result(error_code=error.code, log_dir="", topics=[])])


def describe(
    directory: LogDirectory,
    logs: Mapping[TopicPartition, PartitionLog],
    future_logs: Mapping[TopicPartition, PartitionLog],
    requested: Collection[TopicPartition],
) -> Result:
    path = os.path.abspath(directory.path)  # noqa: PTH100  (pathlib would take 3 ms of the start)
    if directory.offline is not None:
        return Result(error_code=KafkaStorageError.code, log_dir=path, topics=[])
    topics: dict[str, list[Partition]] = {}
    for key, log in logs.items():
        if log.log_directory is directory:
            partitions = topics.setdefault(key[0], [])
            if key in requested:
                partitions.append(
                    Partition(partition_index=key[1], partition_size=log.size, offset_lag=0, is_future_key=False)
                )
    for key, future in future_logs.items():
        partitions = topics.setdefault(key[0], [])
        if key in requested:
            partitions.append(
                Partition(
                    partition_index=key[1],
                    partition_size=future.size,
                    offset_lag=max(logs[key].log_end_offset - future.log_end_offset, 0) if key in logs else 0,
                    is_future_key=True,
                )
            )
    try:
        space = directory.files.space(directory.path)
    except OSError:  # the volume is gone; the next append fails and takes the directory offline
        space = UNKNOWN_SPACE
    return Result(
        log_dir=path,
        topics=[Topic(name=topic, partitions=topics[topic]) for topic in topics if topics[topic]],
        total_bytes=space.total,
        usable_bytes=space.usable,
        is_cordoned=directory.is_cordoned,
    )
