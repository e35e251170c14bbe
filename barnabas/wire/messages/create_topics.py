"""CreateTopics (API key 19): create topics, or validate the request only.

v1 validate_only, error_message · v2 throttle_time_ms · v3 throttled after the response (KIP-219) · v4 -1 for the
broker's own defaults (KIP-464) · v5 flexible; the response describes the topic (KIP-525) · v6 THROTTLING_QUOTA_EXCEEDED
(KIP-599) · v7 topic_id (KIP-516)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int8, int16, int32, string, uuid


class CreateTopicsRequest(Request, api_key=19, versions="0-7", flexible="5+"):
    class CreatableTopic(Struct):
        class CreatableReplicaAssignment(Struct):
            partition_index: int32
            broker_ids: list[int32]

        class CreatableTopicConfig(Struct):
            name: string
            value: string | None

        name: string
        num_partitions: int32  #: -1: ``num.partitions``, or the number of assignments
        replication_factor: int16  #: -1: ``default.replication.factor``, or that of the assignments
        assignments: list[CreatableReplicaAssignment]  #: the replicas of each partition; empty: the broker chooses
        configs: list[CreatableTopicConfig]

    topics: list[CreatableTopic]
    timeout_ms: int32 = 60000
    validate_only: bool = field("1+", default=False)


class CreateTopicsResponse(Response, to=CreateTopicsRequest):
    class CreatableTopicResult(Struct):
        class CreatableTopicConfigs(Struct):
            name: string
            value: string | None
            read_only: bool
            config_source: int8 = -1
            is_sensitive: bool

        name: string
        topic_id: uuid = field("7+", default=ZERO_UUID)
        error_code: int16 = 0
        error_message: string | None = field("1+", default=None)
        topic_config_error_code: int16 = field("5+", tag=0, default=0)  #: why ``configs`` is null
        num_partitions: int32 = field("5+", default=-1)
        replication_factor: int16 = field("5+", default=-1)
        #: all configs in effect, as in DescribeConfigs
        configs: list[CreatableTopicConfigs] | None = field("5+", default=())

    throttle_time_ms: int32 = field("2+", default=0)
    topics: list[CreatableTopicResult]
