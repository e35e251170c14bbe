"""StreamsGroupTopologyDescriptionUpdate (API key 93): a member describes its topology (KIP-1331).

Knows nothing of topologies. Apache Kafka passes the description to a plug-in. Here it is stored in memory with the
group, and members have to send it again after a restart.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.rebalance_protocols import STREAMS, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeResponse
from barnabas.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

Request = StreamsGroupTopologyDescriptionUpdateRequest
Response = StreamsGroupTopologyDescriptionUpdateResponse
Described = StreamsGroupDescribeResponse


@api(Request)
def streams_group_topology_description_update(request: Request, context: Context) -> Response:
    """Stores the description in the form of the response of StreamsGroupDescribe."""
    try:
        require_protocol(STREAMS, context)
        context.broker.groups.streams.describe_topology(
            request.group_id, request.member_id, request.topology_epoch, _description(request.topology_description)
        )
    except KafkaError as error:
        return Response(error_code=error.code, error_message=str(error))
    return Response()


def _description(given: Request.TopologyDescription) -> Described.TopologyDescription:
    return Described.TopologyDescription(
        subtopologies=[
            Described.TopologyDescriptionSubtopology(
                subtopology_id=each.subtopology_id, nodes=[_node(node) for node in each.nodes]
            )
            for each in given.subtopologies
        ],
        global_stores=[
            Described.TopologyDescriptionGlobalStore(source=_node(each.source), processor=_node(each.processor))
            for each in given.global_stores
        ],
    )


def _node(given: Request.TopologyDescriptionNode) -> Described.TopologyDescriptionNode:
    return Described.TopologyDescriptionNode(
        name=given.name,
        node_type=given.node_type,
        source_topics=given.source_topics,
        sink_topic=given.sink_topic,
        stores=given.stores,
        successors=given.successors,
    )
