"""StreamsGroupTopologyDescriptionUpdate (API key 93): the description of a streams group's topology, for people.

A member sends it when a heartbeat response requires it
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int8, int16, int32, string


class StreamsGroupTopologyDescriptionUpdateRequest(Request, api_key=93, versions="0", flexible="0+"):
    class TopologyDescription(Struct):
        subtopologies: list["StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology"]
        global_stores: list["StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore"]

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: string
        nodes: list["StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode"]

    class TopologyDescriptionNode(Struct):
        name: string
        node_type: int8
        source_topics: list[string]
        sink_topic: string | None = None
        stores: list[string]
        successors: list[string]

    class TopologyDescriptionGlobalStore(Struct):
        source: "StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode"
        processor: "StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode"

    group_id: string
    member_id: string
    topology_epoch: int32
    topology_description: TopologyDescription


class StreamsGroupTopologyDescriptionUpdateResponse(Response, to=StreamsGroupTopologyDescriptionUpdateRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
