"""AlterReplicaLogDirs (API key 34): move replicas of a broker from one of its data directories to another (KIP-113).

v1 throttled after the response (KIP-219) · v2 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, string


class AlterReplicaLogDirsRequest(Request, api_key=34, versions="0-2", flexible="2+"):
    class AlterReplicaLogDir(Struct):
        class AlterReplicaLogDirTopic(Struct):
            name: string
            partitions: list[int32]

        path: string  #: absolute, as in DescribeLogDirs
        topics: list[AlterReplicaLogDirTopic]

    dirs: list[AlterReplicaLogDir]


class AlterReplicaLogDirsResponse(Response, to=AlterReplicaLogDirsRequest):
    class AlterReplicaLogDirTopicResult(Struct):
        class AlterReplicaLogDirPartitionResult(Struct):
            partition_index: int32
            error_code: int16 = 0

        topic_name: string
        partitions: list[AlterReplicaLogDirPartitionResult]

    throttle_time_ms: int32 = 0
    results: list[AlterReplicaLogDirTopicResult]
