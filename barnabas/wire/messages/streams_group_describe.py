"""StreamsGroupDescribe (API key 89): the topology, the members and the tasks of streams groups (KIP-1071).

v1 the description of the topology and the assignor's name
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, int64, string, uint16


class StreamsGroupDescribeRequest(Request, api_key=89, versions="0-1", flexible="0+"):
    group_ids: list[string]
    include_authorized_operations: bool
    include_topology_description: bool = field("1+", default=False)


class StreamsGroupDescribeResponse(Response, to=StreamsGroupDescribeRequest):
    class Endpoint(Struct):
        host: string
        port: uint16

    class TaskOffset(Struct):
        subtopology_id: string
        partition: int32
        offset: int64

    class Assignment(Struct):
        active_tasks: list["StreamsGroupDescribeResponse.TaskIds"]
        standby_tasks: list["StreamsGroupDescribeResponse.TaskIds"]
        warmup_tasks: list["StreamsGroupDescribeResponse.TaskIds"]

    class TaskIds(Struct):
        subtopology_id: string
        partitions: list[int32]

    class KeyValue(Struct):
        key: string
        value: string

    class TopicInfo(Struct):
        name: string
        partitions: int32
        replication_factor: int16
        topic_configs: list["StreamsGroupDescribeResponse.KeyValue"]

    class TopologyDescription(Struct):
        subtopologies: list["StreamsGroupDescribeResponse.TopologyDescriptionSubtopology"] = field("1+", default=())
        global_stores: list["StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore"] = field("1+", default=())

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: string = field("1+", default="")
        nodes: list["StreamsGroupDescribeResponse.TopologyDescriptionNode"] = field("1+", default=())

    class TopologyDescriptionNode(Struct):
        name: string = field("1+", default="")
        node_type: int8 = field("1+", default=0)
        source_topics: list[string] = field("1+", default=())
        sink_topic: string | None = field("1+", default=None)
        stores: list[string] = field("1+", default=())
        successors: list[string] = field("1+", default=())

    class TopologyDescriptionGlobalStore(Struct):
        source: "StreamsGroupDescribeResponse.TopologyDescriptionNode" = field("1+", default=0)
        processor: "StreamsGroupDescribeResponse.TopologyDescriptionNode" = field("1+", default=0)

    class DescribedGroup(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id: string
                source_topics: list[string]
                repartition_sink_topics: list[string]
                state_changelog_topics: list["StreamsGroupDescribeResponse.TopicInfo"]
                repartition_source_topics: list["StreamsGroupDescribeResponse.TopicInfo"]

            epoch: int32
            subtopologies: list[Subtopology] | None = None

        class Member(Struct):
            member_id: string
            member_epoch: int32
            instance_id: string | None = None
            rack_id: string | None = None
            client_id: string
            client_host: string
            topology_epoch: int32
            process_id: string
            user_endpoint: "StreamsGroupDescribeResponse.Endpoint | None" = None
            client_tags: list["StreamsGroupDescribeResponse.KeyValue"]
            task_offsets: list["StreamsGroupDescribeResponse.TaskOffset"]
            task_end_offsets: list["StreamsGroupDescribeResponse.TaskOffset"]
            assignment: "StreamsGroupDescribeResponse.Assignment"
            target_assignment: "StreamsGroupDescribeResponse.Assignment"
            is_classic: bool

        error_code: int16 = 0
        error_message: string | None = None
        group_id: string
        group_state: string
        group_epoch: int32
        assignment_epoch: int32
        topology: Topology | None = None
        members: list[Member]
        authorized_operations: int32 = -2147483648
        topology_description: "StreamsGroupDescribeResponse.TopologyDescription | None" = field("1+", default=None)
        topology_description_status: int8 = field("1+", default=0)
        assignor_name: string | None = field("1+", default=None)

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup]
