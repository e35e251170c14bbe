"""Listeners with TLS over real sockets: accepted and refused clients, and their cost."""

import contextlib
import logging
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import pytest
import trustme

from barnabas.records.builder import build_batch
from barnabas.server import tls as tls_module
from barnabas.server.tls import TlsTransport
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.raw import Client, framed
from tests.security.tls.stores import inline

ASK = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL",
    "listener.name.mutual.ssl.client.auth": "required",
    "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)@.*$/$1/U,RULE:^O=refused.*$/x/",
}


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def broker(authority):
    with Broker({**LISTENERS, **inline(authority, authority.issue_cert("127.0.0.1"))}) as broker:
        yield broker


def port_of(broker, name):
    return next(each.port for each in broker._server.listeners if each.endpoint.name == name)


class TlsClient(Client):
    """A client with TLS; ``name`` is the common name of its certificate."""

    def __init__(self, port, authority, *, name=None, context=None):
        super().__init__(port)
        context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority.configure_trust(context)
        if name is not None:
            authority.issue_cert("client.example.org", common_name=name).configure_cert(context)
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")


def test_listeners_of_several_protocols_side_by_side(broker, authority):
    with Client(port_of(broker, "PLAINTEXT")) as plain, TlsClient(port_of(broker, "SSL"), authority) as encrypted:
        assert plain.ask(ASK, 4).api_keys == encrypted.ask(ASK, 4).api_keys
        assert encrypted.socket.version() == "TLSv1.3"


@pytest.mark.parametrize("size", [10, 5000, 40_000, 3_000_000])
def test_what_is_written_is_read_again(broker, authority, size):
    topic = f"sized-{size}"
    broker.create_topic(topic, configs={"max.message.bytes": 10_000_000})
    value = bytes(index * 7 % 251 for index in range(size))
    batch = build_batch([(b"k", value, 1_700_000_000_000)])
    topic_data, fetch_topic = ProduceRequest.TopicProduceData, FetchRequest.FetchTopic
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[topic_data(name=topic, partition_data=[topic_data.PartitionProduceData(index=0, records=batch)])],
    )
    partition = fetch_topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50_000_000)
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[fetch_topic(topic=topic, partitions=[partition])])
    with TlsClient(port_of(broker, "SSL"), authority) as client:
        assert client.ask(produce, 9).responses[0].partition_responses[0].error_code == 0
        records = client.ask(fetch, 11).responses[0].partitions[0].records
        assert value in bytes(records)


class Late:
    """Delays the second step of each handshake, when it is finished for the client."""

    def __init__(self, background):
        self.background, self.steps, self.may_go_on = background, 0, threading.Event()

    def run(self, work, done):
        self.steps += 1
        is_late = self.steps > 1
        self.background.run(lambda: ((not is_late or self.may_go_on.wait(10)), work()), done)


def test_a_large_request_may_arrive_before_the_handshake_is_worked_on(broker, authority):
    broker.create_topic("early", configs={"max.message.bytes": 10_000_000})
    batch = build_batch([(None, bytes(3_000_000), 1_700_000_000_000)])
    topic_data = ProduceRequest.TopicProduceData
    rows = [topic_data.PartitionProduceData(index=0, records=batch)]
    produce = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic_data(name="early", partition_data=rows)])
    listener = next(each for each in broker._server.listeners if each.endpoint.name == "SSL")

    def unfinished():
        return broker._call(lambda: [each for each in listener.connections if isinstance(each, TlsTransport)])

    with Client(listener.port):
        eventually(unfinished)
        handshakes = unfinished()[0]._handshakes
    late = handshakes.background = Late(handshakes.background)
    try:
        with TlsClient(listener.port, authority) as client:
            sending = threading.Thread(target=client.send, args=(framed(produce, 9),))
            sending.start()
            eventually(lambda: any(each._is_full for each in unfinished()))
            late.may_go_on.set()
            sending.join()
            answer = ProduceResponse.decode(client.receive(), version=9, at=5)
            assert answer.responses[0].partition_responses[0].error_code == 0
    finally:
        late.may_go_on.set()
        handshakes.background = late.background


def eventually(is_so):
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline


def test_requests_byte_by_byte_and_many_at_once(broker, authority):
    with TlsClient(port_of(broker, "SSL"), authority) as client:
        for byte in framed(ASK, 0):
            client.send(bytes([byte]))
        assert client.receive() is not None
        client.send(b"".join(framed(ASK, 3, number) for number in range(3000)))
        frames = [client.receive() for _ in range(3000)]
        assert [struct.unpack_from(">i", frame)[0] for frame in frames] == list(range(3000))


def test_a_client_that_does_not_read_is_not_read(broker, authority):
    """Its responses are far larger than the socket buffers. The broker's buffer stays small, and nothing is lost."""
    broker.create_topic("unread")
    batch = bytes(build_batch([(None, os.urandom(900_000), 1_700_000_000_000)]))
    topic_data, fetch_topic = ProduceRequest.TopicProduceData, FetchRequest.FetchTopic
    produce = ProduceRequest(
        acks=1,
        timeout_ms=5000,
        topic_data=[
            topic_data(name="unread", partition_data=[topic_data.PartitionProduceData(index=0, records=batch)])
        ],
    )
    partition = fetch_topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[fetch_topic(topic="unread", partitions=[partition])])
    with TlsClient(port_of(broker, "SSL"), authority) as client:
        assert client.ask(produce, 9).responses[0].partition_responses[0].error_code == 0
        listener = next(each for each in broker._server.listeners if each.endpoint.name == "SSL")
        own = client.socket.getsockname()
        (connection,) = [each for each in listener.connections if each.peer == own]
        count, held = 100, []
        client.send(b"".join(framed(fetch, 4, number) for number in range(count)))
        for number in range(count):
            frame = client.receive()
            assert struct.unpack_from(">i", frame)[0] == number
            held.append(connection.transport.get_write_buffer_size())
    assert max(held) < 5 << 20


def principals(broker):
    return broker._call(
        lambda: {
            str(each._responder.session.principal)
            for listener in broker._server.listeners
            for each in listener.connections
            if hasattr(each, "_responder")
        }
    )


def test_a_certificate_says_who_the_client_is(broker, authority):
    with TlsClient(port_of(broker, "MUTUAL"), authority, name="alice@example.org") as client:
        assert client.ask(ASK, 4).error_code == 0
        assert "User:ALICE" in principals(broker)


def refused(port, authority, caplog, **how):
    """Returns the log lines about a refused client."""
    caplog.set_level(logging.INFO, "barnabas")
    caplog.clear()
    with contextlib.suppress(OSError), TlsClient(port, authority, **how) as client:
        assert client.ask(ASK, 4) is None
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("Failed authentication with 127.0.0.1:")
    return line


def test_who_shows_no_certificate_is_refused(broker, authority, caplog):
    assert "PEER_DID_NOT_RETURN_A_CERTIFICATE" in refused(port_of(broker, "MUTUAL"), authority, caplog)


def test_whose_authority_is_unknown_is_refused(broker, authority, caplog):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trustme.CA().issue_cert("x", common_name="mallory@example.org").configure_cert(context)
    assert "certificate" in refused(port_of(broker, "MUTUAL"), authority, caplog, context=context)


def test_whose_name_no_rule_matches_is_refused(broker, authority, caplog):
    assert "No rules apply to CN=Bob" in refused(port_of(broker, "MUTUAL"), authority, caplog, name="Bob")


@pytest.mark.parametrize(
    "sent",
    [framed(ASK, 3), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x80" * 300],
    ids=["Kafka", "HTTP", "a broken hello", "noise"],
)
def test_what_is_no_handshake_costs_one_connection_and_one_line(broker, caplog, sent):
    with caplog.at_level(logging.INFO, "barnabas"), Client(port_of(broker, "SSL")) as client:
        client.send(sent)
        with contextlib.suppress(ConnectionResetError):
            while client.socket.recv(1000):
                pass
    (line,) = [each.getMessage() for each in caplog.records]
    assert "SSL handshake failed" in line
    assert ("speaks no TLS" in line) == (sent[0] != 0x16)


def test_a_client_that_leaves_before_the_end_is_forgotten(broker):
    for _ in range(20):
        with Client(port_of(broker, "SSL")) as client:
            client.send(b"\x16\x03\x01\x02\x00")
    listener = next(each for each in broker._server.listeners if each.endpoint.name == "SSL")
    while broker._call(lambda: len(listener.connections)):
        pass


@pytest.fixture
def impatient(authority, monkeypatch):
    monkeypatch.setattr(tls_module, "MOST_HANDSHAKE_BYTES", 4000)  # a ClientHello of OpenSSL 3.5 has 1500
    monkeypatch.setattr(tls_module.Handshakes.__init__, "__defaults__", (3,))
    configs = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    with Broker({**configs, **inline(authority, authority.issue_cert("127.0.0.1"))}) as broker:
        yield broker


def closed(client):
    try:
        return client.socket.recv(1) == b""
    except ConnectionResetError:
        return True


def test_one_unfinished_handshake_too_many_ends_the_oldest(impatient, authority):
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(Client(impatient.port)) for _ in range(4)]
        assert closed(waiting[0])
        with TlsClient(impatient.port, authority) as client:
            assert client.ask(ASK, 4).error_code == 0
        assert closed(waiting[1])
        waiting[3].socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            waiting[3].socket.recv(1)


def test_a_handshake_of_too_many_bytes_is_ended(impatient, caplog):
    with caplog.at_level(logging.INFO, "barnabas"), Client(impatient.port) as client:
        client.send(b"\x16\x03\x01\x3f\xff" + b"\x01\x00\x3f\xfb" + bytes(5000))
        assert closed(client)
    assert "sent more than 4000 bytes" in caplog.text


def test_a_slow_handshake_is_ended(authority, monkeypatch, caplog):
    monkeypatch.setattr(tls_module, "HANDSHAKE_S", 0.01)
    configs = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    with Broker({**configs, **inline(authority, authority.issue_cert("127.0.0.1"))}) as broker:
        with caplog.at_level(logging.INFO, "barnabas"), Client(broker.port) as client:
            assert closed(client)
        assert "it took too long" in caplog.text


def test_a_broker_that_stops_ends_handshakes(authority):
    configs = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    with Broker({**configs, **inline(authority, authority.issue_cert("127.0.0.1"))}) as broker:
        client = socket.create_connection(("127.0.0.1", broker.port))
        while not broker._call(lambda: len(broker._server.listeners[0].connections)):
            pass
    assert client.recv(1) == b""
    client.close()


def test_sasl_over_tls(authority):
    """SASL defines the principal, not the certificate of the client."""
    user = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    configs = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": user,
        "listener.name.sasl_ssl.ssl.client.auth": "required",
    }
    with Broker({**configs, **inline(authority, authority.issue_cert("127.0.0.1"))}) as broker:
        with TlsClient(broker.port, authority, name="bob") as client:
            assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
            refused = client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 2)
            assert refused.error_code == 58
        with TlsClient(broker.port, authority, name="bob") as client:
            assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
            assert client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2).error_code == 0
            assert client.ask(ASK, 4).error_code == 0


def test_nothing_of_tls_is_imported_without_it():
    program = (
        "import sys; from barnabas.testing import Broker\n"
        "rooms = 'cryptography', 'barnabas.security.tls', 'barnabas.server.tls'\n"
        "with Broker(): print([name for name in rooms if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("tls", "error"),
    [("garbage", "WRONG_VERSION_NUMBER|wrong version"), ("alert", "(?i)handshake.failure"), ("cut", "EOF|reset")],
)
def test_a_fault_may_speak_tls_badly(broker, authority, tls, error):
    with broker.faults.add(tls=tls, first=1) as rule:
        with Client(port_of(broker, "PLAINTEXT")) as plain:
            assert plain.ask(ASK, 4).api_keys
        with pytest.raises((ssl.SSLError, ConnectionError), match=error):
            TlsClient(port_of(broker, "SSL"), authority)
        with TlsClient(port_of(broker, "SSL"), authority) as client:
            assert client.ask(ASK, 4).api_keys
    assert rule.hits == 1
