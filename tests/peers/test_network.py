"""Requests to other nodes over real sockets: to a real broker, and to a faulty fake."""

import asyncio
import struct
from types import SimpleNamespace

import pytest

from barnabas.clock import SystemClock
from barnabas.config.endpoints import Endpoint
from barnabas.errors import NetworkException, RequestTimedOut, UnsupportedVersion
from barnabas.peers.handshake import response_to
from barnabas.peers.network import Lane, NetworkPeers
from barnabas.peers.peers import ConnectionRefused
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

OTHER = 2


class Asking:
    """Node 1, on the test's own loop. ``endpoint`` is the address of node 2."""

    def __init__(self, endpoint, **configs):
        self.endpoint = endpoint
        loop = asyncio.get_running_loop()
        config = {
            "request.timeout.ms": 30_000,
            "connections.max.idle.ms": 600_000,
            "socket.connection.setup.timeout.ms": 10_000,
            **{name.replace("_", "."): value for name, value in configs.items()},
        }
        node = SimpleNamespace(node_id=1, config=config, cluster_clock=SystemClock(), cluster_scheduler=loop)
        self.peers = NetworkPeers(node, lambda node_id: self.endpoint if node_id == OTHER else None)

    async def ask(self, request, *, node_id=OTHER, lane="", timeout_ms=None):
        answered = asyncio.get_running_loop().create_future()
        self.peers.send(node_id, request, lambda *answer: answered.set_result(answer), lane=lane, timeout_ms=timeout_ms)
        response, error = await asyncio.wait_for(answered, 30)
        if error is not None:
            raise error
        return response


def at(port):
    return Endpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT")


class Other:
    """A node that responds to ApiVersions, and then calls ``serve(reader, writer, header)``."""

    def __init__(self, serve, versions=((3, 0, 13), (18, 0, 4))):
        self._serve = serve
        self._versions = versions
        self.connections = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return at(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_):
        self._server.close()

    async def _accept(self, reader, writer):
        self.connections += 1
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                key, version, correlation_id = struct.unpack_from(">hhi", frame)
                if key == ApiVersionsRequest.api_key:
                    keys = [
                        ApiVersionsResponse.ApiVersion(api_key=k, min_version=a, max_version=b)
                        for k, a, b in self._versions
                    ]
                    writer.writelines(ApiVersionsResponse(api_keys=keys).encode_frame(correlation_id, version))
                else:
                    await self._serve(writer, correlation_id, version)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def metadata_frame(correlation_id, version, size=10):
    topics = [MetadataResponse.MetadataResponseTopic(name="x" * size, error_code=3, partitions=[])] if size else []
    return b"".join(MetadataResponse(brokers=[], topics=topics).encode_frame(correlation_id, version))


METADATA = MetadataRequest(topics=None)


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        broker.create_topic("orders")
        yield broker


def test_a_broker_answers(broker):
    async def test():
        asking = Asking(at(broker.port))
        answers = [await asking.ask(METADATA, lane=lane) for lane in ("", "", "a")]
        assert [[topic.name for topic in answer.topics] for answer in answers] == [["orders"]] * 3
        asking.peers.close()

    run(test())


def test_a_lane_does_not_wait_for_another(broker):
    async def test():
        asking = Asking(at(broker.port))
        metadata = await asking.ask(METADATA)
        partition = FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topic = FetchRequest.FetchTopic(topic_id=metadata.topics[0].topic_id, partitions=[partition])
        fetch = FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1000, topics=[topic])
        waiting = asyncio.ensure_future(asking.ask(fetch, lane="fetcher-0"))
        for _ in range(3):
            await asking.ask(METADATA)
        assert not waiting.done()
        asking.peers.close()
        with pytest.raises(NetworkException):
            await waiting

    run(test())


def test_nobody_there():
    async def test():
        with pytest.raises(NetworkException):
            await Asking(None).ask(METADATA)
        listening = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        asking = Asking(at(listening.sockets[0].getsockname()[1]))
        listening.close()
        await listening.wait_closed()
        for _ in range(2):  # also after the back-off
            with pytest.raises(ConnectionRefused):
                await asking.ask(METADATA)

    run(test())


@pytest.mark.parametrize("size", [1, 1000, 70_000, 3_000_000])
@pytest.mark.parametrize("cut", [1, 4, 9, 70_000])
def test_responses_come_in_any_pieces(size, cut):
    async def serve(writer, correlation_id, version):
        frame = metadata_frame(correlation_id, 1, size if size < 30_000 else 30_000)
        body = bytes(size) if size >= 30_000 else b""
        frame = struct.pack(">i", len(frame) - 4 + len(body)) + frame[4:] + body  # bytes after a message are ignored
        head = frame[: cut * 3] if cut < 10 else frame[:cut]
        for index in range(0, len(head), cut):
            writer.write(head[index : index + cut])
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(frame[len(head) :])

    async def test():
        other = Other(serve, [(3, 0, 1)])
        async with other as endpoint:
            asking = Asking(endpoint)
            answers = await asyncio.gather(*(asking.ask(METADATA) for _ in range(5)))
            assert {len(answer.topics[0].name) for answer in answers} == {min(size, 30_000)}
            assert other.connections == 1
            asking.peers.close()

    run(test())


def test_versions_that_do_not_meet():
    async def test():
        async with Other(None) as endpoint:
            asking = Asking(endpoint)
            with pytest.raises(UnsupportedVersion):
                await asking.ask(BeginQuorumEpochRequest(cluster_id=None, topics=[]))
            asking.peers.close()

    run(test())


def test_a_silent_node_is_disconnected_after_the_timeout_and_connected_again():
    silent = True

    async def serve(writer, correlation_id, version):
        if not silent:
            writer.write(metadata_frame(correlation_id, version))

    async def test():
        nonlocal silent
        other = Other(serve)
        async with other as endpoint:
            asking = Asking(endpoint)
            with pytest.raises(RequestTimedOut):
                await asking.ask(METADATA, timeout_ms=100)
            silent = False
            assert (await asking.ask(METADATA)).topics
            assert other.connections == 2
            asking.peers.close()

    run(test())


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack(">ii", 4, 99),  # no request has this correlation id
        struct.pack(">i", -1),
        struct.pack(">i", 3) + b"abc",
        None,  # a closed connection
    ],
)
def test_a_node_that_answers_badly_is_left(answer):
    async def serve(writer, correlation_id, version):
        if answer is None:
            writer.close()
        else:
            writer.write(answer)

    async def test():
        async with Other(serve) as endpoint:
            asking = Asking(endpoint)
            with pytest.raises(NetworkException):
                await asking.ask(METADATA)
            asking.peers.close()

    run(test())


def test_a_response_cut_short_closes_the_connection():
    async def serve(writer, correlation_id, version):
        frame = metadata_frame(correlation_id, version)[4:-4]
        writer.write(struct.pack(">i", len(frame)) + frame)

    async def test():
        async with Other(serve) as endpoint:
            asking = Asking(endpoint)
            with pytest.raises(NetworkException):
                await asking.ask(METADATA)
            asking.peers.close()

    run(test())


def test_a_node_that_has_moved_is_found(broker):
    async def serve(writer, correlation_id, version):
        writer.write(metadata_frame(correlation_id, version))

    async def test():
        async with Other(serve) as endpoint:
            asking = Asking(endpoint)
            assert (await asking.ask(METADATA)).topics[0].name == "x" * 10
            asking.endpoint = at(broker.port)
            assert (await asking.ask(METADATA)).topics[0].name == "orders"
            asking.peers.close()

    run(test())


def test_a_request_that_waits_for_a_connection_times_out():
    async def test():
        async with Mute() as endpoint:
            asking = Asking(endpoint)
            with pytest.raises(RequestTimedOut):
                await asking.ask(METADATA, timeout_ms=50)
            asking.peers.close()

    run(test())


def test_a_node_that_does_not_say_its_versions_is_given_up():
    async def test():
        async with Mute() as endpoint:
            asking = Asking(endpoint, socket_connection_setup_timeout_ms=50)
            with pytest.raises(NetworkException):
                await asking.ask(METADATA)
            asking.peers.close()

    run(test())


def test_requests_wait_for_a_reauthentication():
    async def serve(writer, correlation_id, version):
        writer.write(metadata_frame(correlation_id, version))

    async def test():
        async with Other(serve) as endpoint:
            asking = Asking(endpoint)
            await asking.ask(METADATA)
            (lane,) = asking.peers._lanes.values()
            lane._connection.hold()
            waiting = [asyncio.ensure_future(asking.ask(METADATA)) for _ in range(2)]
            await response_to(lane._connection, METADATA, 1)
            assert not any(each.done() for each in waiting)
            lane._connection.release()
            await asyncio.gather(*waiting)
            lane._connection.hold()
            with pytest.raises(RequestTimedOut):
                await asking.ask(METADATA, timeout_ms=20)
            asking.peers.close()

    run(test())


def test_an_idle_connection_is_closed_and_made_anew():
    async def serve(writer, correlation_id, version):
        writer.write(metadata_frame(correlation_id, version))

    async def test():
        other = Other(serve)
        async with other as endpoint:
            asking = Asking(endpoint, connections_max_idle_ms=30)
            await asking.ask(METADATA)
            (lane,) = asking.peers._lanes.values()
            async with asyncio.timeout(30):
                while lane._connection is not None:
                    await asyncio.sleep(0.01)
            await asking.ask(METADATA)
            assert other.connections == 2
            asking.peers.close()

    run(test())


def test_client_ids():
    async def test():
        peers = Asking(None).peers
        named = [Lane(peers, OTHER, name)._client_id for name in ("", "fetcher-0", "controller")]
        assert named == ["broker-1", "broker-1-fetcher-0", "1"]

    run(test())


class Mute:
    """A node that accepts connections, and sends nothing."""

    async def __aenter__(self):
        writers = self._writers = []  # one that nobody has is closed
        self._server = await asyncio.start_server(lambda reader, writer: writers.append(writer), "127.0.0.1", 0)
        return at(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_):
        self._server.close()
