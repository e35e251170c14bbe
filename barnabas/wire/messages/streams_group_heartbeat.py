"""StreamsGroupHeartbeat (API key 88): join, stay in or leave a streams group; returns its tasks (KIP-1071).

v1 acceptable_recovery_lag as an int64, topology_description_required
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, int64, string, uint16


class StreamsGroupHeartbeatRequest(Request, api_key=88, versions="0-1", flexible="0+"):
    class KeyValue(Struct):
        key: string
        value: string

    class TopicInfo(Struct):
        name: string
        partitions: int32
        replication_factor: int16
        topic_configs: list["StreamsGroupHeartbeatRequest.KeyValue"]

    class Endpoint(Struct):
        host: string
        port: uint16

    class TaskOffset(Struct):
        subtopology_id: string
        partition: int32
        offset: int64

    class TaskIds(Struct):
        subtopology_id: string
        partitions: list[int32]

    class Topology(Struct):
        class Subtopology(Struct):
            class CopartitionGroup(Struct):
                source_topics: list[int16]
                source_topic_regex: list[int16]
                repartition_source_topics: list[int16]

            subtopology_id: string
            source_topics: list[string]
            source_topic_regex: list[string]
            state_changelog_topics: list["StreamsGroupHeartbeatRequest.TopicInfo"]
            repartition_sink_topics: list[string]
            repartition_source_topics: list["StreamsGroupHeartbeatRequest.TopicInfo"]
            copartition_groups: list[CopartitionGroup]

        epoch: int32
        subtopologies: list[Subtopology]

    group_id: string
    member_id: string
    member_epoch: int32
    endpoint_information_epoch: int32
    instance_id: string | None = None
    rack_id: string | None = None
    rebalance_timeout_ms: int32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: string | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


class StreamsGroupHeartbeatResponse(Response, to=StreamsGroupHeartbeatRequest):
    class Status(Struct):
        status_code: int8
        status_detail: string

    class TopicPartition(Struct):
        topic: string
        partitions: list[int32]

    class TaskIds(Struct):
        subtopology_id: string
        partitions: list[int32]

    class Endpoint(Struct):
        host: string
        port: uint16

    class EndpointToPartitions(Struct):
        user_endpoint: "StreamsGroupHeartbeatResponse.Endpoint"
        active_partitions: list["StreamsGroupHeartbeatResponse.TopicPartition"]
        standby_partitions: list["StreamsGroupHeartbeatResponse.TopicPartition"]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    member_id: string
    member_epoch: int32
    heartbeat_interval_ms: int32
    acceptable_recovery_lag_legacy: int32 = field("0", default=0)
    task_offset_interval_ms: int32
    acceptable_recovery_lag: int64 = field("1+", default=-1)
    status: list[Status] | None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    topology_description_required: bool = field("1+", default=False)
    endpoint_information_epoch: int32
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
