"""AssignReplicasToDirs (API key 73): a broker reports the directories of its replicas to the controller (KIP-858)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, int64, uuid


class AssignReplicasToDirsRequest(Request, api_key=73, versions="0", flexible="0+"):
    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: int32

            topic_id: uuid
            partitions: list[PartitionData]

        id: uuid
        topics: list[TopicData]

    broker_id: int32
    broker_epoch: int64 = -1
    directories: list[DirectoryData]


class AssignReplicasToDirsResponse(Response, to=AssignReplicasToDirsRequest):
    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: int32
                error_code: int16 = 0

            topic_id: uuid
            partitions: list[PartitionData]

        id: uuid
        topics: list[TopicData]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    directories: list[DirectoryData]
