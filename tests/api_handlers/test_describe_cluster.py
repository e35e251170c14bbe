import pytest

from barnabas.api_handlers.describe_cluster import describe_cluster
from barnabas.config.endpoints import Endpoint
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from tests.registering import registration
from tests.submitting import submitted

NOT_REQUESTED = -(1 << 31)


def request(operations=False, **fields):
    return DescribeClusterRequest(include_cluster_authorized_operations=operations, **fields)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_in_every_version(node, version):
    response = node.ask(describe_cluster, request(), version)
    assert (response.error_code, response.error_message, response.endpoint_type) == (0, None, 1)
    assert (response.cluster_id, response.controller_id) == (node.broker.cluster_id, 1)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced) == (
        1, "127.0.0.1", 9092, None, False,
    )  # fmt: skip
    assert response.cluster_authorized_operations == NOT_REQUESTED
    assert node.ask(describe_cluster, request(True), version).cluster_authorized_operations == 8096


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("endpoint_type", "error_code"), [(2, 114), (0, 115), (3, 115), (-1, 115)])
def test_a_brokers_listener_does_not_speak_for_controllers(node, version, endpoint_type, error_code):
    response = node.ask(describe_cluster, request(endpoint_type=endpoint_type), version)
    assert (response.error_code, response.endpoint_type) == (error_code, 1)
    assert response.error_message
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


def test_fenced_brokers_are_told_to_who_asks(node):
    endpoint = Endpoint("PLAINTEXT", "other", 1, "PLAINTEXT")
    command = registration(2, endpoints=[endpoint], rack="r1", cluster_id=node.broker.cluster_id)
    submitted(node.broker.controller, command)
    assert [each.broker_id for each in node.ask(describe_cluster, request(), 2).brokers] == [1]
    _, fenced = node.ask(describe_cluster, request(include_fenced_brokers=True), 2).brokers
    assert (fenced.broker_id, fenced.rack, fenced.is_fenced) == (2, "r1", True)
