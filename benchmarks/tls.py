"""The cost of TLS: producing, consuming and handshakes beside Apache Kafka, and a request during many handshakes.

Knows nothing of how TLS is served. Keys are of the curve P-256, certificates of two levels, as authorities issue.
"""

import contextlib
import socket
import ssl
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from benchmarks import librdkafka, load, servers
from benchmarks.measure import MIB, Row, compared, median_ratio
from benchmarks.servers import Running

RECORD_BYTES, TOTAL_BYTES = 10_240, 512 * MIB
HANDSHAKES, AT_ONCE = 1_000, 4
CROWD, REQUESTS = 1_000, 500


class Stores(NamedTuple):
    """PEM files: the server's key and certificates, and the authority's."""

    server: Path
    authority: Path

    def settings(self) -> dict[str, str]:
        """Returns a broker's configs."""
        return {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server),
        }

    def of_client(self) -> librdkafka.Settings:
        return {"security.protocol": "SSL", "ssl.ca.location": str(self.authority)}


def stores(folder: Path) -> Stores:
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1")
    key = load_pem_private_key(server.private_key_pem.bytes(), None)
    made = Stores((folder / "server.pem").resolve(), (folder / "authority.pem").resolve())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    made.server.write_bytes(pem + b"".join(each.bytes() for each in server.cert_chain_pems))
    authority.cert_pem.write_to_path(made.authority)
    return made


@contextlib.contextmanager
def barnabas(folder: Path, made: Stores, port: int) -> Iterator[Running]:
    listeners = f"listeners=PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:{port}"
    settings = [f"{name}={value}" for name, value in made.settings().items()]
    with servers.barnabas(folder, listeners, *settings) as running:
        yield running


@contextlib.contextmanager
def apache(folder: Path, made: Stores, port: int) -> Iterator[Running]:
    with servers.apache(folder, f"TLS://127.0.0.1:{port}", **made.settings()) as running:
        yield running


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def beside_apache(folder: Path, rounds: int) -> Iterator[Row]:
    """Runs the load of librdkafka on both, in turns, over TLS; then handshakes without resumption."""
    made = stores(folder)
    produced, consumed, rates, costs = [], [], [], []
    for index in range(rounds):
        flows, met = [], []
        for start in (barnabas, apache):
            port = free_port()
            with start(folder / f"tls-{index}", made, port) as running:
                flows.append(one_round(running, port, made))
                handshakes(port, made, HANDSHAKES)  # the JIT has compiled the hot code by then
                before = running.cpu_s()
                seconds = handshakes(port, made, HANDSHAKES)
                met.append((HANDSHAKES / seconds, (running.cpu_s() - before) / HANDSHAKES * 1000))
        produced.append((flows[0][0], flows[1][0]))
        consumed.append((flows[0][1], flows[1][1]))
        rates.append((met[0][0], met[1][0]))
        costs.append((met[0][1], met[1][1]))
    yield from compared(f"TLS: produce {RECORD_BYTES} B", produced, 1.1, 0.8)
    yield from compared(f"TLS: consume {RECORD_BYTES} B", consumed, 1.1, 0.8)
    for what, pairs in (("handshakes a second", rates), ("CPU of a handshake, ms", costs)):
        ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
        yield Row(f"TLS: {what}", f"{ours:,.2f}", f"Apache {theirs:,.2f}", median_ratio(pairs), "", None)


def one_round(running: Running, port: int, made: Stores) -> tuple[librdkafka.Flow, librdkafka.Flow]:
    bootstrap, settings = f"127.0.0.1:{port}", made.of_client()
    for topic in ("warm", "bench"):
        load.create_topic(running.port, topic)
    librdkafka.produce(bootstrap, running.cpu_s, "warm", RECORD_BYTES, TOTAL_BYTES // 8, settings)
    sent = librdkafka.produce(bootstrap, running.cpu_s, "bench", RECORD_BYTES, TOTAL_BYTES, settings)
    return sent, librdkafka.consume(bootstrap, running.cpu_s, "bench", RECORD_BYTES, TOTAL_BYTES, settings)


def handshakes(port: int, made: Stores, count: int) -> float:
    """Connects repeatedly, in a few threads; returns the seconds."""
    context = ssl.create_default_context(cafile=str(made.authority))

    def connect() -> None:
        for _ in range(count // AT_ONCE):
            with (
                socket.create_connection(("127.0.0.1", port)) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1"),
            ):
                pass

    threads = [threading.Thread(target=connect) for _ in range(AT_ONCE)]
    began = time.perf_counter()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return time.perf_counter() - began


def crowd(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures a request on a plain listener: alone, beside 1,000 idle handshakes, and while 1,000 begin."""
    made, port = stores(folder), free_port()
    idle, begun = [], []
    hello = client_hello()
    with barnabas(folder / "crowd", made, port) as running:
        for _ in range(rounds):
            alone = statistics.median(round_trips(running.port, REQUESTS))
            with ExitStack() as stack:
                waiting = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(CROWD)]
                for each in waiting:
                    each.sendall(hello[:100])
                idle.append((statistics.median(round_trips(running.port, REQUESTS)) * 1000, alone * 1000))
                for each in waiting:
                    each.sendall(hello[100:])
                begun.append((statistics.median(round_trips(running.port, REQUESTS // 10)) * 1000, alone * 1000))
    for what, pairs in (("unfinished", idle), ("that begin at once", begun)):
        ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
        ratio = median_ratio(pairs)
        name = f"TLS: a request beside {CROWD:,} handshakes {what}, p50"
        yield Row(name, f"{ours:.2f} ms", f"alone {theirs:.2f} ms", ratio, "<= 2x", ratio <= 2)


def client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def round_trips(port: int, count: int) -> list[float]:
    buffer, found = bytearray(1 << 16), []
    with load.connected(port) as connection:
        for _ in range(count):
            began = time.perf_counter()
            connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 0000"))
            load.receive(connection, buffer)
            found.append(time.perf_counter() - began)
    return found
