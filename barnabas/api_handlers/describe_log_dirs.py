"""DescribeLogDirs (API key 35): the log directories, how full they are, and how large the logs in them (KIP-113).

Knows nothing of segments and indexes: a log's size is that of its records.
"""

from pathlib import Path

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import KafkaStorageError
from barnabas.log.files import Files, Space
from barnabas.log.log_directory import LogDirectory
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = Result.DescribeLogDirsTopic
Partition = Topic.DescribeLogDirsPartition

UNKNOWN_SPACE = Space(-1, -1)


@api(DescribeLogDirsRequest, versions="0-5")
def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    """Describe all directories, of those that failed no more than that; the logs that were asked for, or all."""
    asked: set[tuple[str, int]] | None = None
    if request.topics is not None:
        asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    manager = context.broker.log_manager
    return DescribeLogDirsResponse(
        results=[describe(directory, manager.files, asked) for directory in manager.directories]
    )


def describe(directory: LogDirectory, files: Files, asked: set[tuple[str, int]] | None) -> Result:
    path = str(Path(directory.path).absolute())
    if directory.offline is not None:
        return Result(error_code=KafkaStorageError.code, log_dir=path, topics=[])
    topics: dict[str, list[Partition]] = {}
    for (topic, index), log in directory.logs.items():
        if topic != CLUSTER_METADATA and (asked is None or (topic, index) in asked):
            topics.setdefault(topic, []).append(
                Partition(partition_index=index, partition_size=log.size, offset_lag=0, is_future_key=False)
            )
    try:
        space = files.space(directory.path)
    except OSError:  # the volume is gone, which the next append will find out as well
        space = UNKNOWN_SPACE
    return Result(
        log_dir=path,
        topics=[Topic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        total_bytes=space.total,
        usable_bytes=space.usable,
    )
