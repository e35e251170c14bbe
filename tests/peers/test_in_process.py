"""Requests between nodes in one process, as objects and encoded."""

import pytest

from barnabas.errors import NONE, NetworkException, UnknownServerError, UnknownTopicOrPartition
from barnabas.peers.in_process import InProcessPeers, Node
from barnabas.peers.peers import error_of
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.kinds import kind

Marker = WriteTxnMarkersRequest.WritableTxnMarker


def request():
    return WriteTxnMarkersRequest(
        markers=[
            Marker(
                producer_id=1,
                producer_epoch=2,
                transaction_result=True,
                topics=[],
                coordinator_epoch=3,
                transaction_version=2,
            )
        ]
    )


class Answering:
    """A node that records the requests, and responds when the test tells it to."""

    def __init__(self, version):
        self.requests = []
        self.node = Node(self.answer, lambda request: version)

    def answer(self, request, version, done):
        self.requests.append((request, version, done))


@pytest.mark.parametrize(("encodes", "version"), [(False, 2), (True, 2), (True, 1)])
def test_a_request_and_its_response(encodes, version):
    peers, node, results = InProcessPeers(encodes=encodes), Answering(version), []
    peers.join(1, node.node)
    sent, response = request(), WriteTxnMarkersResponse(markers=[])
    peers.send(1, sent, lambda response, error: results.append((response, kind(error))))
    ((received, received_version, done),) = node.requests
    assert received_version == version
    assert (received is sent) is not encodes
    assert received.markers[0].transaction_version == (2 if version == 2 else 0)
    assert results == []
    done(response, None)
    ((answer, error),) = results
    assert error is None
    assert answer == response
    assert (answer is response) is not encodes


@pytest.mark.parametrize("encodes", [False, True])
def test_an_error_instead_of_a_response(encodes):
    peers, node, results = InProcessPeers(encodes=encodes), Answering(2), []
    peers.join(1, node.node)
    peers.send(1, request(), lambda response, error: results.append((response, kind(error))))
    node.requests[0][2](None, NetworkException())
    assert results == [(None, NetworkException)]


def test_a_node_that_is_not_there():
    peers, results = InProcessPeers(), []
    peers.join(1, Answering(2).node)
    peers.leave(1)
    peers.send(1, request(), lambda response, error: results.append((response, kind(error))))
    assert results == [(None, NetworkException)]


def test_errors_by_their_codes():
    assert [kind(error_of(code)) for code in (NONE, 3, 9999)] == [None, UnknownTopicOrPartition, UnknownServerError]
