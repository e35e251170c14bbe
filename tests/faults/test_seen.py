"""Recorded and counted requests, also when the ring of them is full."""

import pytest

from barnabas.faults.seen import KEPT, Seen, SeenRequest
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.raw import Client

VERSIONS = ApiVersionsRequest(client_software_name="n", client_software_version="1")


def seen_request(request=VERSIONS, client_id="one"):
    return SeenRequest(
        request,
        version=3,
        time_ms=0,
        size=20,
        connection=1,
        node=1,
        client_id=client_id,
        client_software_name="n",
        client_software_version="1",
    )


def test_requests_are_numbered_from_1_and_the_oldest_ones_go():
    seen = Seen(kept=3)
    assert (seen.count, seen.first) == (0, 1)
    for _ in range(5):
        seen.add(seen_request())
    assert [each.number for each in seen.find()] == [3, 4, 5]
    assert (seen.count, seen.first) == (5, 3)
    seen.clear()
    seen.add(seen_request())
    assert [each.number for each in seen.find()] == [6]


def test_those_after_a_number_are_found_by_api_and_client():
    seen = Seen(kept=4)
    for request, client_id in ((VERSIONS, "one"), (MetadataRequest(topics=[]), "one"), (VERSIONS, "two")) * 2:
        seen.add(seen_request(request, client_id))
    assert [each.number for each in seen.find("ApiVersions", after=3)] == [4, 6]
    assert [each.number for each in seen.find("ApiVersions", "two", after=3)] == [6]
    assert [each.number for each in seen.find(client_id="two", node=1)] == [3, 6]
    assert seen.find(node=2) == []
    assert seen.find(after=6) == []


@pytest.fixture
def full():
    """A broker with a full ring of requests, and a client of it."""
    with Broker() as broker, Client(broker.port) as client:
        client.ask(MetadataRequest(topics=[]), 12)
        broker.record_requests()
        for _ in range(KEPT):
            broker.faults.watch.seen.add(seen_request())
        yield broker, client


def test_what_is_expected_is_counted_when_no_more_is_kept(full):
    broker, client = full
    with broker.expect(api="Metadata", times=2) as expected, broker.expect(api="ApiVersions", times=0):
        client.ask(MetadataRequest(topics=[]), 12)
        client.ask(MetadataRequest(topics=[]), 12)
    assert [each.number for each in expected.requests] == [KEPT + 1, KEPT + 2]
    assert len(broker.requests()) == KEPT
    with pytest.raises(AssertionError, match="1 instead of 0 requests of Metadata"), broker.expect("Metadata", times=0):
        client.ask(MetadataRequest(topics=[]), 12)


def test_more_than_is_kept_cannot_be_counted(full):
    broker, _ = full

    def come():
        for _ in range(KEPT + 1):
            broker.faults.watch.seen.add(seen_request())

    with broker.expect(api="ApiVersions") as expected:
        come()
    assert len(expected.requests) == KEPT
    message = f"{KEPT + 1} requests came, and only the last {KEPT} are kept"
    with pytest.raises(AssertionError, match=message), broker.expect(api="Metadata", times=0):
        come()
