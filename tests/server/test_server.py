"""A whole server over real sockets: accepted connections, closed ones, and that others are not affected."""

import os
import socket
import struct

import pytest

from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.raw import Client, framed

ASK_VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


def api_key_of(answer):
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def test_one_answer_for_each_request_in_order(broker):
    with Client(broker.port) as client:
        client.send(b"".join(framed(ASK_VERSIONS, 3, number) for number in range(50)))
        frames = [client.receive() for _ in range(50)]
    assert [struct.unpack_from(">i", frame)[0] for frame in frames] == list(range(50))


def test_a_request_byte_by_byte(broker):
    with Client(broker.port) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(ASK_VERSIONS, 0):
            client.send(bytes([byte]))
        assert client.receive() is not None


@pytest.mark.parametrize("version", [5, 99, -1, 32767])
def test_api_versions_of_the_future_are_told_the_present(broker, version):
    with Client(broker.port) as client:
        client.send(framed(ASK_VERSIONS, 3, 7, api_version=version))
        frame = client.receive()
        assert struct.unpack_from(">i", frame)[0] == 7
        answer = ApiVersionsResponse.decode(frame, version=0, at=4)
        assert answer.error_code == 35
        assert api_key_of(answer) == {18: (0, 4)}
        assert client.ask(ASK_VERSIONS, 3).error_code == 0, "the connection is still of use"


@pytest.mark.parametrize(
    "name, version", [("", "1"), ("raw", ""), ("a_b", "1"), ("-a", "1"), ("a", "1-"), ("a b", "1")]
)
def test_software_with_an_odd_name_is_refused(broker, name, version):
    with Client(broker.port) as client:
        odd = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answer = client.ask(odd, 3)
        assert answer.error_code == 42 and not answer.api_keys


def test_produce_is_advertised_from_zero(broker):
    with Client(broker.port) as client:
        assert api_key_of(client.ask(ASK_VERSIONS, 4))[0] == (0, 13)


GARBAGE = {
    "an unknown API": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "a version that is none": framed(MetadataRequest(topics=[]), 0, api_version=77),
    "Produce before version 3": framed(MetadataRequest(topics=[]), 0)[:4] + struct.pack(">hhi", 0, 2, 1) + b"\0" * 9,
    "a header cut short": struct.pack(">ih", 2, 18),
    "nothing in a frame": struct.pack(">i", 0),
    "a client id longer than the frame": struct.pack(">ihhih", 10, 18, 0, 1, 500),
    "a body cut short": struct.pack(">ihhihi", 14, 3, 0, 1, -1, 5),
    "a negative length": struct.pack(">i", -5),
    "an absurd length": struct.pack(">i", 2**31 - 1),
    "another protocol": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(200),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_closes_that_connection_and_no_other(broker, what):
    with Client(broker.port) as bystander, Client(broker.port) as client:
        client.send(GARBAGE[what])
        client.socket.shutdown(socket.SHUT_WR)
        assert client.receive() is None
        assert bystander.ask(ASK_VERSIONS, 3).error_code == 0


def test_garbage_is_worth_one_line_in_the_log(broker, caplog):
    with Client(broker.port) as client:
        client.send(struct.pack(">i", -5))
        assert client.receive() is None
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("barnabas.server")]
    assert len(lines) == 1 and "socket.request.max.bytes" in lines[0] and "127.0.0.1" in lines[0]


def test_bytes_after_a_request_are_let_be(broker):
    request = framed(ASK_VERSIONS, 0)
    with Client(broker.port) as client:
        client.send(struct.pack(">i", len(request)) + request[4:] + b"more")
        assert client.receive() is not None


def test_so_many_from_one_address():
    with Broker({"max.connections.per.ip": 2}) as broker, Client(broker.port) as one, Client(broker.port) as two:
        assert one.ask(ASK_VERSIONS, 3) and two.ask(ASK_VERSIONS, 3)
        with Client(broker.port) as three:
            assert three.receive() is None
        one.socket.close()
        assert eventually(lambda: admitted(broker))


def test_so_many_in_all():
    with Broker({"max.connections": 1}) as broker, Client(broker.port) as one:
        assert one.ask(ASK_VERSIONS, 3)
        assert not admitted(broker)


def test_an_address_with_a_number_of_its_own():
    configs = {"max.connections.per.ip": 0, "max.connections.per.ip.overrides": "127.0.0.1:1"}
    with Broker(configs) as broker, Client(broker.port) as one:
        assert one.ask(ASK_VERSIONS, 3)
        assert not admitted(broker)


def admitted(broker):
    with Client(broker.port) as client:
        try:
            return client.ask(ASK_VERSIONS, 3) is not None
        except (ConnectionResetError, BrokenPipeError):
            return False


def eventually(condition, tries=200):
    """Waits for a condition that another thread makes true; each try is a round trip."""
    return any(condition() for _ in range(tries))


def test_who_is_silent_for_too_long_is_closed():
    with Broker({"connections.max.idle.ms": 50}) as broker, Client(broker.port) as client:
        assert client.ask(ASK_VERSIONS, 3)
        assert client.receive() is None


def test_requests_above_the_limit_are_not_taken():
    with Broker({"socket.request.max.bytes": 1000}) as broker, Client(broker.port) as client:
        client.send(struct.pack(">i", 1001))
        assert client.receive() is None


def test_each_listener_advertises_its_own_address():
    listeners = "ONE://127.0.0.1:0,TWO://127.0.0.1:0"
    configs = {
        "listeners": listeners,
        "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
        "inter.broker.listener.name": "ONE",
        "advertised.listeners": "ONE://127.0.0.1:0,TWO://proxy.example:4711",
    }
    with Broker(configs) as broker:
        ports = [listener.port for listener in broker._server.listeners]
        assert len(set(ports)) == 2
        results = []
        for port in ports:
            with Client(port) as client:
                (node,) = client.ask(MetadataRequest(topics=[]), 4).brokers
                results.append((node.host, node.port))
    assert results == [("127.0.0.1", ports[0]), ("proxy.example", 4711)]


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_ipv6():
    with Broker({"listeners": "PLAINTEXT://[::1]:0"}) as broker, Client(broker.port, "::1") as client:
        (node,) = client.ask(MetadataRequest(topics=[]), 4).brokers
        assert (node.host, node.port) == ("::1", broker.port)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"), Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}):
            pass


def test_a_client_that_does_not_read_is_not_read(broker):
    """Its responses are far larger than the socket buffers; the broker's buffer stays small."""
    broker.reset()
    broker.create_topic("big")
    batch = bytes(build_batch([(None, os.urandom(900_000), 0)]))
    topic = ProduceRequest.TopicProduceData
    produce = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[topic(name="big", partition_data=[topic.PartitionProduceData(index=0, records=batch)])],
    )
    fetch_topic = FetchRequest.FetchTopic
    fetch = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=[
            fetch_topic(
                topic="big",
                partitions=[fetch_topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
            )
        ],
    )
    with Client(broker.port) as client:
        assert client.ask(produce, 8).responses[0].partition_responses[0].error_code == 0
        (connection,) = broker._server.listeners[0].connections
        count = 300
        client.send(b"".join(framed(fetch, 4, number) for number in range(count)))
        held = []
        for number in range(count):
            frame = client.receive()
            assert struct.unpack_from(">i", frame)[0] == number
            held.append(connection.transport.get_write_buffer_size())
    assert max(held) < 5 << 20


def test_stopping_answers_what_is_in_hand_and_hangs_up():
    broker = Broker()
    broker.start()
    with Client(broker.port) as client:
        assert client.ask(ASK_VERSIONS, 3)
        broker.stop()
        assert client.receive() is None
        with pytest.raises(OSError):
            Client(broker.port)


def test_two_brokers_in_one_process():
    with Broker() as one, Broker() as other:
        one.create_topic("here")
        assert one.port != other.port
        assert (one.topics(), other.topics()) == (["here"], [])


def test_a_directory_that_is_in_use_is_refused(tmp_path):
    configs = {"log.dirs": tmp_path}
    with Broker(configs, on_disk=True), pytest.raises(Exception, match=str(tmp_path)), Broker(configs, on_disk=True):
        pass


def test_what_was_there_is_there_again(tmp_path):
    configs = {"log.dirs": tmp_path}
    with Broker(configs, on_disk=True) as broker:
        broker.create_topic("kept", partitions=2, configs={"retention.ms": 1234567})
        topic_id = broker._server.broker.image.topics_by_name["kept"].id
    with Broker(configs, on_disk=True) as broker:
        image = broker._server.broker.image
        assert image.topics_by_name["kept"].id == topic_id
        assert dict(image.configs[2, "kept"]) == {"retention.ms": "1234567"}
        assert broker._server.broker.partitions["kept", 1].log.config.retention_ms == 1234567
