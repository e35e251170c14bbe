"""DescribeCluster (API key 60): the brokers of the cluster, with their endpoints for the client's listener.

Knows nothing of topics. A broker's listener does not return controllers (KIP-919).
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import CLUSTER_OPERATIONS, code_of, message_of
from barnabas.api_handlers.registry import api
from barnabas.broker.nodes import Node
from barnabas.errors import InvalidRequest, KafkaError, MismatchedEndpointType, UnsupportedEndpointType
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2
TYPES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


@api(DescribeClusterRequest)
def describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    """Describes the cluster. Fenced brokers are included if the request says so."""
    broker = context.broker
    response = DescribeClusterResponse(cluster_id="", brokers=[])
    error = checked_endpoint_type(request.endpoint_type, BROKERS, context.api_version)
    if error is not None:
        response.error_code, response.error_message = code_of(error), message_of(error)
        return response
    response.cluster_id, response.controller_id = broker.cluster_id, broker.node_id
    response.brokers = broker.nodes.described(
        context.session.listener, described, include_fenced=request.include_fenced_brokers
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def described(node: Node) -> DescribeClusterResponse.DescribeClusterBroker:
    return DescribeClusterResponse.DescribeClusterBroker(
        broker_id=node.id, host=node.host, port=node.port, rack=node.rack, is_fenced=node.is_fenced
    )


def checked_endpoint_type(wanted: int, here: int, version: int) -> KafkaError | None:
    """Returns the error of a request to an endpoint of another type, or of an unknown one.

    :param wanted: the type in the request
    :param here: the type of the listener
    """
    if wanted not in TYPES:
        unsupported = f"Unsupported endpoint type {wanted}"
        return UnsupportedEndpointType(unsupported) if version else InvalidRequest(unsupported)
    if wanted != here:
        mismatched = (
            f"The request was sent to an endpoint of type {TYPES[here]}, but we wanted an endpoint of type "
            f"{TYPES[wanted]}"
        )
        return MismatchedEndpointType(mismatched) if version else InvalidRequest(mismatched)
    return None
