"""Apache Kafka and Barnabas with the same SASL listeners, and a SASL client on a plain socket.

Holds no expected responses.
"""

import base64
import contextlib
import hashlib
import hmac
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from compat_tests.ports import free_port
from compat_tests.running import ALONE, BarnabasProcess

from .apache import ApacheKafka
from .play import Connection, Step, read_answer, request_frame

MODULES = "org.apache.kafka.common.security"
PASSWORDS = {"alice": "alice-secret", "bob": "bob-secret"}
SALT = b"a salt of this test"
ITERATIONS = 4096
MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
"""The number of a mechanism in the APIs, and its hash."""

SERVER_FIRST = re.compile(rb"r=(.?)[^,]{20,}(?=,s=)")
LIFETIME_MS = 3000
CLOSED = "closed"

PLAIN_USERS = "".join(f' user_{name}="{password}"' for name, password in PASSWORDS.items())
LOGINS = {
    "plain": f"{MODULES}.plain.PlainLoginModule required{PLAIN_USERS};",
    "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
}


class Pair(NamedTuple):
    """The ports of one broker's listeners."""

    open: int  #: without SASL
    sasl: int  #: PLAIN and both SCRAMs
    short: int  #: the same; sessions are short
    strict: int  #: PLAIN only, and small tokens


def settings(ports: Pair) -> dict[str, str]:
    names = {"SASL": ports.sasl, "SHORT": ports.short, "STRICT": ports.strict}
    found = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        + ",".join(f"{name}:SASL_PLAINTEXT" for name in names),
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.short.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.strict.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.short.plain.connections.max.reauth.ms": str(LIFETIME_MS),
        "listener.name.short.scram-sha-256.connections.max.reauth.ms": "3600000",
        "listener.name.strict.sasl.server.max.receive.size": "100",
    }
    for name in names:
        for mechanism, jaas in LOGINS.items():
            found[f"listener.name.{name.lower()}.{mechanism}.sasl.jaas.config"] = jaas
    return found


def addresses(ports: Pair) -> str:
    named = zip(("PLAINTEXT", "SASL", "SHORT", "STRICT"), ports, strict=True)
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in named)


@contextlib.contextmanager
def apache(home: Path) -> Iterator[Pair]:
    broker = ApacheKafka(home, ALONE)
    ports = Pair(broker.port, *(free_port() for _ in range(3)))
    controller = broker.properties["listeners"].partition(",")[2]
    broker.properties |= settings(ports) | {
        "listeners": f"{addresses(ports)},{controller}",
        "advertised.listeners": addresses(ports),
    }
    with broker:
        yield ports


@contextlib.contextmanager
def barnabas(home: Path) -> Iterator[Pair]:
    ports = Pair(*(free_port() for _ in range(4)))
    places = {"listeners": addresses(ports), "advertised.listeners": addresses(ports)}
    broker = BarnabasProcess(home, {"node.id": "1", **settings(ports), **places})
    broker.port = ports.open
    broker.start()
    try:
        yield ports
        assert broker.complaints() == []
    finally:
        broker.stop()


@contextlib.contextmanager
def pair(home: Path) -> Iterator[tuple[Pair, Pair]]:
    """Yields both; ``BARNABAS_COMPAT_BESIDE=apache`` uses a second Apache Kafka, to check the tests themselves."""
    beside = apache if os.environ.get("BARNABAS_COMPAT_BESIDE") == "apache" else barnabas
    with apache(home / "apache") as theirs, beside(home / "beside") as ours:
        for ports in (theirs, ours):
            with Talk(ports.open) as talk:
                set_credentials(talk)
            for mechanism in MECHANISMS:
                until_let_in(ports.sasl, mechanism, "alice", PASSWORDS["alice"])
        yield theirs, ours


def both(brokers: tuple[Pair, Pair], script: "Callable[[Pair], Any]") -> tuple[Any, Any]:
    """Returns the responses of Apache Kafka, and of the broker beside it."""
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(script, brokers)
    return theirs, ours


def normal(answer: Any) -> Any:
    """Returns the response without the server's nonce, and with the mechanisms sorted: they come from a hash set."""
    if isinstance(answer, dict) and "Mechanisms" in answer:
        return {**answer, "Mechanisms": sorted(answer["Mechanisms"])}
    if isinstance(answer, dict) and SERVER_FIRST.match(answer.get("AuthBytes") or b""):
        return {**answer, "AuthBytes": SERVER_FIRST.sub(rb"r=\1...", answer["AuthBytes"])}
    return answer


class Talk:
    """One connection, whose responses are kept in ``heard``; a context manager."""

    def __init__(self, port: int) -> None:
        self.connection = Connection(("127.0.0.1", port))
        self.heard: list[Any] = []

    def __enter__(self) -> "Talk":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.socket.close()

    def ask(self, api: str, version: int, **body: Any) -> Any:
        self.send(api, version, **body)
        return self.receive(api, version)

    def send(self, api: str, version: int, **body: Any) -> None:
        self.connection.correlation_id += 1
        step = Step("ask", api)
        self.connection.send(request_frame(step, body, version, self.connection.correlation_id))

    def receive(self, api: str, version: int) -> Any:
        answer = read_answer(self.connection.receive(10), api, version, self.connection.correlation_id)
        self.heard.append(normal(answer))
        return answer

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask("SaslHandshake", version, Mechanism=mechanism)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        return self.ask("SaslAuthenticate", version, AuthBytes=token)

    def raw(self, data: bytes) -> Any:
        """Sends a frame; returns the frame that comes back, in hex."""
        self.connection.send(struct.pack(">i", len(data)) + data)
        answer = self.connection.receive(10)
        answer = answer.hex() if isinstance(answer, bytes) else answer
        self.heard.append(answer)
        return answer

    def plain(self, user: str, password: str | None = None, version: int = 2) -> Any:
        self.handshake("PLAIN")
        return self.authenticate(f"\0{user}\0{password or PASSWORDS[user]}".encode(), version)

    def who(self) -> Any:
        """Returns the error code of a request that needs an authenticated client."""
        answer = self.ask("FindCoordinator", 0, Key="somebody")
        self.heard.pop()
        self.heard.append(answer if answer == CLOSED else "served" if answer["ErrorCode"] in (0, 15) else answer)
        return self.heard[-1]


class Scram:
    """The client's side of SCRAM (RFC 5802), with messages that a script may change."""

    def __init__(
        self, mechanism: str, user: str, password: str, *, gs2: str = "n,,", more: str = "", nonce: str = "ours"
    ) -> None:
        self.hash = MECHANISMS[mechanism][1]
        self.password, self.gs2 = password, gs2
        self.bare = f"n={user},r={nonce}{more}"

    @property
    def first(self) -> bytes:
        return f"{self.gs2}{self.bare}".encode()

    def final(self, server_first: bytes, *, binding: str | None = None, more: str = "") -> bytes:
        parts = dict(each.split("=", 1) for each in server_first.decode().split(","))
        salted = hashlib.pbkdf2_hmac(self.hash, self.password.encode(), base64.b64decode(parts["s"]), int(parts["i"]))
        key = hmac.digest(salted, b"Client Key", self.hash)
        channel = base64.b64encode(self.gs2.encode()).decode() if binding is None else binding
        without_proof = f"c={channel},r={parts['r']}{more}"
        message = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self.hash, key).digest(), message, self.hash)
        self.server_signature = hmac.digest(hmac.digest(salted, b"Server Key", self.hash), message, self.hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def salted_password(mechanism: str, password: str, iterations: int = ITERATIONS) -> bytes:
    return hashlib.pbkdf2_hmac(MECHANISMS[mechanism][1], password.encode(), SALT, iterations)


def upsertion(user: str, mechanism: str, password: str, **more: Any) -> dict[str, Any]:
    return {
        "Name": user,
        "Mechanism": MECHANISMS[mechanism][0],
        "Iterations": ITERATIONS,
        "Salt": SALT,
        "SaltedPassword": salted_password(mechanism, password),
    } | more


def set_credentials(talk: Talk) -> None:
    """Alice has both mechanisms, bob has one."""
    for mechanism in MECHANISMS:
        users = [name for name in PASSWORDS if name == "alice" or mechanism == "SCRAM-SHA-256"]
        wanted = [upsertion(name, mechanism, PASSWORDS[name]) for name in users]
        answer = talk.ask("AlterUserScramCredentials", 0, Deletions=[], Upsertions=wanted)
        assert [each["ErrorCode"] for each in answer["Results"]] == [0] * len(users), answer


def until_let_in(port: int, mechanism: str, user: str, password: str) -> None:
    """Returns once a login succeeds: a broker of Apache Kafka applies a credential after the response."""
    deadline = time.monotonic() + 20
    while True:
        with Talk(port) as talk:
            answer = log_in(talk, Scram(mechanism, user, password), mechanism)
        if answer != CLOSED and not answer["ErrorCode"]:
            return
        assert time.monotonic() < deadline, answer


def log_in(talk: Talk, client: Scram, mechanism: str, **bent: Any) -> Any:
    """Runs SCRAM to its end; returns the last response, with words for the server's signature."""
    talk.handshake(mechanism)
    first = talk.authenticate(client.first)
    if first == CLOSED or first["ErrorCode"]:
        return first
    final = client.final(first["AuthBytes"], **bent)
    last = talk.authenticate(final)
    if last != CLOSED and not last["ErrorCode"]:
        proven = last["AuthBytes"] == b"v=" + base64.b64encode(client.server_signature)
        talk.heard[-1] = "proven" if proven else "not proven"
    return last
