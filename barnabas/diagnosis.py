"""Diagnoses why a client cannot connect to a Kafka cluster, and returns advice.

Knows nothing of any client: it connects by plain sockets, sends one ApiVersions request, and calls a function that
returns the advertised addresses of the brokers.
"""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

TIMEOUT_S = 2.0
DEFAULT_PORT = 9092

MOST_PROBES = 16
"""The number of brokers that are probed at the same time."""

_CORRELATION_ID = b"\x7b\x1e\xc0\xde"
API_VERSIONS = b"\0\0\0\x0a" + b"\0\x12\0\0" + _CORRELATION_ID + b"\xff\xff"
"""An ApiVersions request that all brokers since 0.10 support: API key 18, version 0, without a client id."""

HTTP_GET = b"GET / HTTP/1.0\r\n\r\n"


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parses ``host``, ``host:port``, ``[ipv6]:port``, or one of these after ``PROTOCOL://``."""
        bare = text.strip().rpartition("://")[2]
        host, _, port = bare.rpartition(":")
        if bare.startswith("["):
            host, _, port = bare[1:].partition("]")
            port = port.removeprefix(":")
        elif bare.count(":") != 1:
            host, port = bare, ""
        return cls(host, int(port) if port.isdecimal() else DEFAULT_PORT)


class AdvertisedBroker(NamedTuple):
    """A broker with its advertised address of the bootstrap listener."""

    node_id: int
    address: Address


def diagnose(
    bootstrap_servers: Iterable[Address],
    advertised: Callable[[], Iterable[AdvertisedBroker]],
    *,
    tls: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> str | None:
    """Returns the problem of the connection to the cluster, and advice, in one line; None if there is no problem.

    :param advertised: requests the brokers of the cluster from a bootstrap server; may raise any exception
    :param tls: whether the client uses TLS
    :param timeout_s: the time-out of each connection and each response
    """
    servers = list(bootstrap_servers)
    problems = _probe_all(servers, tls=tls, timeout_s=timeout_s)
    answering = [server for server, problem in zip(servers, problems, strict=True) if problem is None]
    if not answering:
        return "; ".join(dict.fromkeys(filter(None, problems)))
    try:
        brokers = list(advertised())
    except Exception as error:  # of any client: its text has the reason
        return (
            f"{answering[0]} is a Kafka broker, but refuses this client ({error}). Look at the client's "
            "security.protocol, sasl.mechanism and credentials, and at the protocol of that listener"
        )
    return diagnose_advertised(answering[0], brokers, tls=tls, timeout_s=timeout_s)


def diagnose_advertised(
    bootstrap: Address, brokers: Iterable[AdvertisedBroker], *, tls: bool = False, timeout_s: float = TIMEOUT_S
) -> str | None:
    """Returns which advertised addresses cannot be reached, and why, in one line; None if all can be reached."""
    brokers = list(brokers)
    problems = _probe_all([each.address for each in brokers], tls=tls, timeout_s=timeout_s)
    unreachable = [
        f"{broker.address} (node {broker.node_id}): {problem}"
        for broker, problem in zip(brokers, problems, strict=True)
        if problem is not None
    ]
    if not unreachable:
        return None
    return (
        f"The broker at {bootstrap} answers, but clients must connect to the address that a broker advertises, and "
        f"cannot: {'; '.join(unreachable)}. Set advertised.listeners of that broker to an address that this machine "
        "can reach"
    )


def _probe_all(addresses: list[Address], *, tls: bool, timeout_s: float) -> list[str | None]:
    if not addresses:
        return []
    with ThreadPoolExecutor(min(len(addresses), MOST_PROBES)) as threads:
        return list(threads.map(lambda address: probe(address, tls=tls, timeout_s=timeout_s), addresses))


def probe(address: Address, *, tls: bool = False, timeout_s: float = TIMEOUT_S) -> str | None:
    """Returns why no Kafka broker can be reached at the address, and advice; None if a broker responds."""
    try:
        with _connected(address, timeout_s):
            pass
    except socket.gaierror as error:
        return f"the host {address.host} is unknown ({error.strerror}): look at its spelling, and at DNS"
    except ConnectionRefusedError:
        return (
            f"nothing listens on {address} (connection refused): look whether the broker runs, and at the port of its "
            "listeners"
        )
    except TimeoutError:
        return f"{address} does not answer within {timeout_s:g} s: look at the host, its network and its firewall"
    except OSError as error:
        return f"{address} cannot be reached: {error.strerror or error}"
    return _other_protocol(address, tls=tls, timeout_s=timeout_s)


def _other_protocol(address: Address, *, tls: bool, timeout_s: float) -> str | None:
    """Returns the protocol of a listener that is not Kafka, or the security protocol of a Kafka listener."""
    reply = _exchange(address, API_VERSIONS, tls=tls, timeout_s=timeout_s)
    if _is_kafka(reply):
        return None
    speaks_tls = _speaks_tls(address, timeout_s)
    if speaks_tls and tls and not reply:
        return None  # it refuses this client's certificate, or requires one: the client's own error says so
    if speaks_tls and not tls:
        return (
            f"{address} speaks TLS, and this client does not: set security.protocol to SSL or SASL_SSL, or look for a "
            "listener without TLS"
        )
    if tls and _is_kafka(_exchange(address, API_VERSIONS, tls=False, timeout_s=timeout_s)):
        return (
            f"{address} is a Kafka broker without TLS, and this client speaks TLS: set security.protocol to PLAINTEXT "
            "or SASL_PLAINTEXT, or look for a listener with TLS"
        )
    if _is_http(reply) or _is_http(_exchange(address, HTTP_GET, tls=False, timeout_s=timeout_s)):
        return f"{address} is not a Kafka broker: it speaks HTTP. Look for the port of the broker's listeners"
    if reply is None:
        behaviour = f"does not answer a request within {timeout_s:g} s"
    elif reply:
        behaviour = "answers in another protocol"
    else:
        behaviour = "closes the connection at once"
    return (
        f"something listens on {address} that {behaviour}, so it is not a Kafka broker: look for the port of the "
        "broker's listeners"
    )


def _is_kafka(reply: bytes | None) -> bool:
    return reply is not None and reply[4:8] == _CORRELATION_ID


def _is_http(reply: bytes | None) -> bool:
    return reply is not None and (reply.startswith(b"HTTP/") or b"<html" in reply.lower())


def _speaks_tls(address: Address, timeout_s: float) -> bool:
    try:
        with _connected(address, timeout_s) as connection, _trusting().wrap_socket(connection):
            return True
    except ssl.SSLError as error:
        # An alert, such as one about a protocol version, is TLS; anything else is not.
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def _exchange(address: Address, request: bytes, *, tls: bool, timeout_s: float) -> bytes | None:
    """Returns the first bytes of the response; b"" if the connection is closed instead, None after the timeout."""
    try:
        with _open(address, tls, timeout_s) as connection:
            connection.sendall(request)
            reply = b""
            while len(reply) < 8 and (data := connection.recv(512)):
                reply += data
            return reply
    except TimeoutError:
        return None
    except OSError:  # including SSLError
        return b""


@contextlib.contextmanager
def _open(address: Address, tls: bool, timeout_s: float) -> Iterator[socket.socket]:
    with _connected(address, timeout_s) as connection:
        if not tls:
            yield connection
            return
        with _trusting().wrap_socket(connection, server_hostname=address.host) as encrypted:
            yield encrypted


def _connected(address: Address, timeout_s: float) -> socket.socket:
    return socket.create_connection(address, timeout_s)


def _trusting() -> ssl.SSLContext:
    """Returns a context that accepts any certificate, since no secret is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
