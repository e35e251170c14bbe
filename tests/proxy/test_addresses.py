"""Responses with the addresses of nodes, and their replacement."""

from barnabas.proxy.addresses import addressed, limit_versions, looks, replace
from barnabas.wire.frames import requests
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.describe_quorum import DescribeQuorumResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse

ADDRESSED = addressed(requests())
LOOKS = looks(requests(), ADDRESSED)


def seen_at(host, port):
    return "proxy", port + 1


def test_these_answers_have_addresses():
    there = {(each.response.__name__, path) for each in ADDRESSED.values() for path in each.paths}
    assert there == {
        ("ProduceResponse", ("node_endpoints",)),
        ("FetchResponse", ("node_endpoints",)),
        ("MetadataResponse", ("brokers",)),
        ("FindCoordinatorResponse", ()),
        ("FindCoordinatorResponse", ("coordinators",)),
        ("VoteResponse", ("node_endpoints",)),
        ("BeginQuorumEpochResponse", ("node_endpoints",)),
        ("EndQuorumEpochResponse", ("node_endpoints",)),
        ("DescribeQuorumResponse", ("nodes", "listeners")),
        ("FetchSnapshotResponse", ("node_endpoints",)),
        ("DescribeClusterResponse", ("brokers",)),
        ("ShareFetchResponse", ("node_endpoints",)),
        ("ShareAcknowledgeResponse", ("node_endpoints",)),
        ("UpdateRaftVoterResponse", ("current_leader",)),
    }


def test_only_versions_with_addresses_are_looked_at():
    of = {key: sorted(version for there, version in LOOKS if there == key) for key, _ in LOOKS}
    assert of[0] == [10, 11, 12, 13]  # Produce, since KIP-951
    assert of[1] == [16, 17, 18]  # Fetch
    assert of[3] == list(range(14))  # Metadata
    assert of[10] == list(range(7))  # FindCoordinator, whether one or several
    assert of[18] == list(range(6))  # ApiVersions, for the versions in it
    assert of[55] == [2]  # DescribeQuorum, since KIP-853


def test_addresses_within_lists_of_lists_are_replaced():
    Node = DescribeQuorumResponse.Node
    listeners = [Node.Listener(name="CONTROLLER", host="kafka", port=1), Node.Listener(name="B", host="kafka", port=2)]
    response = DescribeQuorumResponse(error_code=0, topics=[], nodes=[Node(node_id=1, listeners=listeners)])
    assert replace(response, ADDRESSED[55].paths, seen_at)
    assert [(each.host, each.port) for each in listeners] == [("proxy", 2), ("proxy", 3)]


def test_where_there_is_no_node_there_is_no_address():
    response = FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1)
    assert not replace(response, ADDRESSED[10].paths, seen_at)
    assert (response.host, response.port) == ("", -1)


def test_versions_in_which_addresses_could_not_be_found_are_not_offered():
    api = ApiVersionsResponse.ApiVersion
    newer = [api(api_key=3, min_version=0, max_version=99), api(api_key=2, min_version=0, max_version=99)]
    response = ApiVersionsResponse(api_keys=newer)
    assert limit_versions(response, ADDRESSED)
    assert [each.max_version for each in newer] == [13, 99]
    assert not limit_versions(response, ADDRESSED)
