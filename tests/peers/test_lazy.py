from barnabas.peers.lazy import LazyPeers
from barnabas.wire.messages.metadata import MetadataRequest

REQUEST = MetadataRequest(topics=None)


class Played:
    def __init__(self):
        self.sent = []
        self.is_closed = False

    def send(self, node_id, request, done, *, lane="", timeout_ms=None):
        self.sent.append((node_id, request, lane, timeout_ms))

    def close(self):
        self.is_closed = True


def test_others_are_connected_to_when_they_are_first_needed():
    local, network, made = Played(), Played(), []
    peers = LazyPeers(1, local, lambda: made.append(network) or network)
    peers.send(1, REQUEST, print, lane="a", timeout_ms=5)
    assert (local.sent, made) == ([(1, REQUEST, "a", 5)], [])
    peers.send(2, REQUEST, print)
    peers.send(3, REQUEST, print, lane="b", timeout_ms=7)
    assert made == [network]
    assert network.sent == [(2, REQUEST, "", None), (3, REQUEST, "b", 7)]
    peers.close()
    assert network.is_closed


def test_a_node_that_is_alone_has_nothing_to_close():
    LazyPeers(1, Played(), Played).close()
