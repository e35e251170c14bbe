"""DescribeLogDirs (API key 35): the sizes of the logs in each data directory (KIP-113).

v1 throttled after the response (KIP-219) · v2 flexible · v3 error_code at the top · v4 total_bytes, usable_bytes
(KIP-827) · v5 is_cordoned (KIP-1066)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string


class DescribeLogDirsRequest(Request, api_key=35, versions="0-5", flexible="2+"):
    class DescribableLogDirTopic(Struct):
        topic: string
        partitions: list[int32]

    topics: list[DescribableLogDirTopic] | None  #: null: all


class DescribeLogDirsResponse(Response, to=DescribeLogDirsRequest):
    class DescribeLogDirsResult(Struct):
        class DescribeLogDirsTopic(Struct):
            class DescribeLogDirsPartition(Struct):
                partition_index: int32
                partition_size: int64
                #: the lag of the log behind the high watermark, or of a future log behind the current one
                offset_lag: int64
                is_future_key: bool  #: whether it is being moved here from another directory

            name: string
            partitions: list[DescribeLogDirsPartition]

        error_code: int16 = 0
        log_dir: string
        topics: list[DescribeLogDirsTopic]
        total_bytes: int64 = field("4+", default=-1)
        usable_bytes: int64 = field("4+", default=-1)
        is_cordoned: bool = field("5+", default=False)

    throttle_time_ms: int32 = 0
    error_code: int16 = field("3+", default=0)
    results: list[DescribeLogDirsResult]
