"""Diagnoses of unreachable clusters, each over real sockets."""

import contextlib
import http.server
import socket
import ssl
import threading

import pytest
import trustme

from barnabas.diagnosis import Address, AdvertisedBroker, diagnose, diagnose_advertised, probe
from barnabas.testing import Broker

TIMEOUT_S = 0.5


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def kafka():
    with Broker() as broker:
        yield Address("127.0.0.1", broker.port)


@pytest.fixture
def listening():
    """Starts listeners that pass each connection to a function, on their own threads."""
    with contextlib.ExitStack() as stack:

        def start(serve):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def accept():
                while True:
                    try:
                        connection, _ = server.accept()
                    except OSError:
                        return
                    with connection, contextlib.suppress(OSError):
                        serve(connection)

            thread = threading.Thread(target=accept, daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown, socket.SHUT_RDWR)  # wakes up accept
            return Address("127.0.0.1", server.getsockname()[1])

        yield start


@pytest.fixture
def refusing():
    """An address without a listener, which stays reserved."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Address("127.0.0.1", bound.getsockname()[1])


@pytest.fixture
def web():
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield Address("127.0.0.1", server.server_address[1])
        server.shutdown()
        thread.join()


def answer_api_versions(connection):
    request = connection.recv(100)
    connection.sendall(b"\0\0\0\x0a" + request[8:12] + bytes(6))
    connection.recv(100)


def over_tls(authority, serve):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as encrypted:
            serve(encrypted)

    return handle


def no_metadata():
    raise AssertionError("there must be no request")


def test_a_broker_is_no_problem(kafka):
    assert probe(kafka, timeout_s=10) is None
    assert diagnose([kafka], lambda: [AdvertisedBroker(1, kafka)], timeout_s=10) is None


def test_a_broker_with_tls_is_no_problem_for_a_client_with_tls(listening, authority):
    assert probe(listening(over_tls(authority, answer_api_versions)), tls=True, timeout_s=10) is None


def test_nothing_listens(refusing):
    problem = diagnose([refusing], no_metadata, timeout_s=TIMEOUT_S)
    assert f"nothing listens on {refusing}" in problem
    assert "connection refused" in problem


def test_the_host_is_unknown():
    problem = diagnose([Address("no-such-host.invalid", 9092)], no_metadata, timeout_s=TIMEOUT_S)
    assert "the host no-such-host.invalid is unknown" in problem


def test_nobody_answers_a_connection():
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = Address("127.0.0.1", server.getsockname()[1])
        for _ in range(3):  # fills the backlog: later connections wait
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        problem = diagnose([address], no_metadata, timeout_s=TIMEOUT_S)
    assert f"{address} does not answer within 0.5 s" in problem


def test_it_speaks_http(web):
    problem = diagnose([web], no_metadata, timeout_s=10)
    assert f"{web} is not a Kafka broker: it speaks HTTP" in problem


def test_it_speaks_tls_and_the_client_does_not(listening, authority):
    address = listening(over_tls(authority, answer_api_versions))
    problem = diagnose([address], no_metadata, timeout_s=10)
    assert f"{address} speaks TLS, and this client does not" in problem
    assert "security.protocol" in problem


def test_the_client_speaks_tls_and_the_broker_does_not(kafka):
    problem = diagnose([kafka], no_metadata, tls=True, timeout_s=10)
    assert f"{kafka} is a Kafka broker without TLS" in problem


def test_it_wants_a_certificate_of_the_client(listening, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED

    def serve(connection):
        with context.wrap_socket(connection, server_side=True) as encrypted:
            answer_api_versions(encrypted)

    assert probe(listening(serve), tls=True, timeout_s=10) is None


def test_it_closes_the_connection_at_once(listening):
    address = listening(lambda connection: None)
    assert f"something listens on {address} that closes the connection at once" in probe(address, timeout_s=10)


def test_it_keeps_silent(listening):
    address = listening(lambda connection: connection.recv(1000) and connection.recv(1000))
    assert "does not answer a request within 0.5 s" in probe(address, timeout_s=TIMEOUT_S)


def test_it_speaks_another_protocol(listening):
    address = listening(lambda connection: connection.sendall(b"220 mail.example.com ESMTP\r\n"))
    assert "not a Kafka broker" in probe(address, timeout_s=10)


def test_an_advertised_address_cannot_be_reached(kafka, refusing):
    problem = diagnose([kafka], lambda: [AdvertisedBroker(7, refusing)], timeout_s=10)
    assert f"The broker at {kafka} answers" in problem
    assert f"{refusing} (node 7): nothing listens on" in problem
    assert "advertised.listeners" in problem


def test_an_advertised_host_is_unknown(kafka):
    problem = diagnose_advertised(kafka, [AdvertisedBroker(1, Address("kafka.invalid", 9092))], timeout_s=10)
    assert "kafka.invalid:9092 (node 1): the host kafka.invalid is unknown" in problem


def test_the_advertised_address_of_one_broker_of_two_cannot_be_reached(kafka, refusing):
    brokers = [AdvertisedBroker(1, kafka), AdvertisedBroker(2, refusing)]
    problem = diagnose_advertised(kafka, brokers, timeout_s=10)
    assert f"{refusing} (node 2)" in problem
    assert "(node 1)" not in problem


def test_the_broker_refuses_the_client(kafka):
    def advertised():
        raise ConnectionError("authentication failed")

    problem = diagnose([kafka], advertised, timeout_s=10)
    assert f"{kafka} is a Kafka broker, but refuses this client (authentication failed)" in problem


def test_one_bootstrap_server_that_answers_is_enough(kafka, refusing):
    assert diagnose([refusing, kafka], lambda: [AdvertisedBroker(1, kafka)], timeout_s=10) is None


def test_each_bootstrap_server_has_its_own_problem(refusing, web):
    problem = diagnose([refusing, web], no_metadata, timeout_s=10)
    assert "nothing listens" in problem
    assert "HTTP" in problem


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("kafka:9093", ("kafka", 9093), "kafka:9093"),
        (" kafka ", ("kafka", 9092), "kafka:9092"),
        ("PLAINTEXT://kafka:9093", ("kafka", 9093), "kafka:9093"),
        ("[::1]:9093", ("::1", 9093), "[::1]:9093"),
        ("[::1]", ("::1", 9092), "[::1]:9092"),
        ("::1", ("::1", 9092), "[::1]:9092"),
    ],
)
def test_addresses(text, address, shown):
    assert Address.parse(text) == address
    assert str(Address.parse(text)) == shown
