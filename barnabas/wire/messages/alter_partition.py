"""AlterPartition (API key 56): the leader of partitions proposes their ISRs to the controller (KIP-497).

v1 leader_recovery_state (KIP-704) · v2 topics by id (KIP-841) · v3 new_isr_with_epochs (KIP-903)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int8, int16, int32, int64, string, uuid


class AlterPartitionRequest(Request, api_key=56, versions="0-3", flexible="0+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            class BrokerState(Struct):
                broker_id: int32
                broker_epoch: int64 = -1  #: -1: the leader does not know it, and it is not checked

            partition_index: int32
            leader_epoch: int32
            new_isr: list[int32] = field("0-2", default=())
            #: replaces ``new_isr``
            new_isr_with_epochs: list[BrokerState] = field("3+", default=())
            leader_recovery_state: int8 = field("1+", default=0)  #: 0: recovered; 1: recovering
            partition_epoch: int32  #: the expected one

        topic_name: string = field("0-1", default="")
        topic_id: uuid = field("2+", default=ZERO_UUID)
        partitions: list[PartitionData]

    broker_id: int32
    broker_epoch: int64 = -1
    topics: list[TopicData]


class AlterPartitionResponse(Response, to=AlterPartitionRequest):
    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int32
            error_code: int16 = 0
            leader_id: int32 = 0
            leader_epoch: int32 = 0
            isr: list[int32] = ()  # type: ignore[assignment]
            leader_recovery_state: int8 = field("1+", default=0)
            partition_epoch: int32 = 0

        topic_name: string = field("0-1", default="")
        topic_id: uuid = field("2+", default=ZERO_UUID)
        partitions: list[PartitionData]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    topics: list[TopicData]
