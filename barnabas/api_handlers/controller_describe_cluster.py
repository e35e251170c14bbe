"""DescribeCluster (API key 60) on a controller's listener: the controllers of the cluster (KIP-919).

Knows nothing of brokers. Apache Kafka's ``ControllerApis.handleDescribeCluster``.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.describe_cluster import CONTROLLERS, checked_endpoint_type
from barnabas.api_handlers.outcome import CLUSTER_OPERATIONS, code_of, message_of
from barnabas.api_handlers.registry import api
from barnabas.cluster.features import CONTROLLER_REGISTRATION
from barnabas.cluster.quorum.client import NO_NODE
from barnabas.errors import UnsupportedVersion
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


@api(DescribeClusterRequest)
def controller_describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    """Describes the registered controllers that have the listener, and says which of them is active.

    :raises UnsupportedVersion: controllers do not register at the metadata.version
    """
    node = context.broker
    image = node.image
    if image.metadata_version < CONTROLLER_REGISTRATION:
        raise UnsupportedVersion(
            "Direct-to-controller communication is not supported with the current MetadataVersion."
        )
    error = checked_endpoint_type(request.endpoint_type, CONTROLLERS, context.api_version)
    if error is not None:
        return DescribeClusterResponse(
            cluster_id="", brokers=[], error_code=code_of(error), error_message=message_of(error)
        )
    listener = context.session.listener
    controllers = [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=each.id, host=each.endpoints[listener].host, port=each.endpoints[listener].port, rack=None
        )
        for each in image.controllers.values()
        if listener in each.endpoints
    ]
    leader_id = node.quorum.leadership.leader_id
    response = DescribeClusterResponse(
        cluster_id=node.cluster_id,
        endpoint_type=CONTROLLERS,
        controller_id=leader_id if any(each.broker_id == leader_id for each in controllers) else NO_NODE,
        brokers=controllers,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
