"""Delegation tokens and OAUTHBEARER beside Apache Kafka: the same requests and tokens to both, and the same responses.

Times are compared relative to the request or to an earlier response, token ids and HMACs by their lengths.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from compat_tests.ports import free_port

from ..running import BarnabasProcess
from .apache import CURRENT, HEAP, ApacheKafka, KafkaUnavailable, jars, quick
from .play import Connection, Step, read_answer, request_frame

MODULES = "org.apache.kafka.common.security"
USERS = ("admin", "alice", "bob", "carol")
KEY, STRANGER = (RSAKey.generate_key(2048, {"kid": name}) for name in ("known", "stranger"))


class Brokers(NamedTuple):
    """The ports of each broker by listener."""

    apache: Mapping[str, int]
    barnabas: Mapping[str, int]


@pytest.fixture(scope="module", autouse=True)
def apache_kafka() -> None:
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    home = tmp_path_factory.mktemp("tokens")
    keys = home / "keys.json"
    keys.write_text(json.dumps(KeySet([KEY]).as_dict(private=False)))
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
    apache = ApacheKafka(home / "apache", settings(keys), options=(*HEAP, *quick(CURRENT), allowed))
    ports = add_listeners(apache.properties, apache.port)
    listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
    ours = add_listeners(listeners, int(listeners["listeners"].rpartition(":")[2]))
    barnabas = BarnabasProcess(home / "barnabas", {**settings(keys), **listeners})
    barnabas.port = ours["PLAINTEXT"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(apache)
        barnabas.start()
        stack.callback(barnabas.stop)
        yield Brokers(ports, ours)


def add_listeners(properties: dict[str, str], plaintext: int) -> dict[str, int]:
    ports = {"SASL": free_port(), "SIGNED": free_port()}
    for name in ("listeners", "advertised.listeners"):
        before = properties.get(name, f"PLAINTEXT://127.0.0.1:{plaintext}")
        properties[name] = before + "".join(f",{each}://127.0.0.1:{port}" for each, port in ports.items())
    return {"PLAINTEXT": plaintext, **ports}


def settings(keys: Path) -> dict[str, str]:
    users = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
    handler = "sasl.server.callback.handler.class"
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,"
        "SIGNED:SASL_PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {users};",
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        "listener.name.sasl.oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="read";',
        "listener.name.signed.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.signed.oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"listener.name.signed.oauthbearer.{handler}": f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "connection.failed.authentication.delay.ms": "0",
        "delegation.token.secret.key": "a key of this test",
    }


# ---------------------------------------------------------------- clients


class Moment(int):
    """A time of a response, in ms, with the times at which the request was sent and the response was received."""

    sent_ms: int
    received_ms: int

    @classmethod
    def within(cls, value: int, sent_ms: int, received_ms: int) -> "Moment":
        made = cls(value)
        made.sent_ms, made.received_ms = sent_ms, received_ms
        return made

    def after_request(self) -> str:
        """Returns how long it is after the request, in steps of ten seconds, the unit of all periods here."""
        least, most = int(self) - self.received_ms, int(self) - self.sent_ms
        steps = most // STEP_MS
        assert least <= steps * STEP_MS, f"{int(self)} is {least} to {most} ms after the request"
        return f"now + {steps} x {STEP_MS} ms"


STEP_MS = 10_000


def moments(answer: Any, sent_ms: int, received_ms: int) -> Any:
    """Returns the response with its times as moments."""
    if isinstance(answer, dict):
        return {name: moments(value, sent_ms, received_ms) for name, value in answer.items()}
    if isinstance(answer, list):
        return [moments(each, sent_ms, received_ms) for each in answer]
    return Moment.within(answer, sent_ms, received_ms) if type(answer) is int and answer > 10**12 else answer


class Client(Connection):
    """A connection that has authenticated by a mechanism, or is about to."""

    def ask(self, api: str, version: int, **body: Any) -> Any:
        self.correlation_id += 1
        sent_ms = time.time_ns() // 10**6
        self.send(request_frame(Step("ask", api), body, version, self.correlation_id))
        answer = read_answer(self.receive(10), api, version, self.correlation_id)
        return moments(answer, sent_ms, time.time_ns() // 10**6)

    def handshake(self, mechanism: str) -> "Client":
        assert self.ask("SaslHandshake", 1, Mechanism=mechanism)["ErrorCode"] == 0
        return self

    def token(self, data: bytes) -> Any:
        return self.ask("SaslAuthenticate", 2, AuthBytes=data)


def plain(port: int, user: str) -> Client:
    client = Client(("127.0.0.1", port)).handshake("PLAIN")
    assert client.token(f"\0{user}\0{user}-secret".encode())["ErrorCode"] == 0
    return client


def scram(port: int, name: str, password: str, extensions: str = ",tokenauth=true") -> tuple[Client, Any]:
    """Returns a client, and the last response to it."""
    client = Client(("127.0.0.1", port)).handshake("SCRAM-SHA-512")
    bare = f"n={name},r=nonce{extensions}"
    answer = client.token(f"n,,{bare}".encode())
    if answer["ErrorCode"]:
        return client, answer
    first = bytes(answer["AuthBytes"]).decode()
    found = dict(each.split("=", 1) for each in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), base64.b64decode(found["s"]), int(found["i"]))
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    final = f"c=biws,r={found['r']}"
    signature = hmac.digest(hashlib.sha512(client_key).digest(), f"{bare},{first},{final}".encode(), "sha512")
    proof = bytes(each ^ other for each, other in zip(client_key, signature, strict=True))
    return client, client.token(f"{final},p={base64.b64encode(proof).decode()}".encode())


# ---------------------------------------------------------------- delegation tokens


class Comparable:
    """The responses of one broker, without what differs from run to run."""

    def __init__(self) -> None:
        self._named: dict[int, str] = {}  # the times of earlier responses

    def answer(self, answer: Any) -> Any:
        if isinstance(answer, dict):
            return {name: self.answer(value) for name, value in answer.items() if name != "ThrottleTimeMs"}
        if isinstance(answer, list):
            return [self.answer(each) for each in answer]
        if isinstance(answer, Moment):
            if answer not in self._named:
                self._named[answer] = answer.after_request()
            return self._named[answer]
        if (isinstance(answer, bytes) and len(answer) == 64) or (isinstance(answer, str) and len(answer) == 22):
            return len(answer)
        return answer

    def described(self, answer: Any) -> Any:
        """Returns a response of DescribeDelegationToken with its tokens sorted."""
        found = self.answer(answer)
        return {**found, "Tokens": sorted(found["Tokens"], key=repr)}


def principal(name: str, kind: str = "User") -> dict[str, str]:
    return {"PrincipalType": kind, "PrincipalName": name}


def create(client: Client, version: int = 3, **body: Any) -> Any:
    return client.ask("CreateDelegationToken", version, **{"Renewers": [], "MaxLifetimeMs": -1, **body})


def renew(client: Client, secret: bytes, period_ms: int, version: int = 2) -> Any:
    return client.ask("RenewDelegationToken", version, Hmac=secret, RenewPeriodMs=period_ms)


def expire(client: Client, secret: bytes, period_ms: int, version: int = 2) -> Any:
    return client.ask("ExpireDelegationToken", version, Hmac=secret, ExpiryTimePeriodMs=period_ms)


def describe(client: Client, owners: list[dict[str, str]] | None = None, version: int = 3) -> Any:
    return client.ask("DescribeDelegationToken", version, Owners=owners)


def await_tokens(client: Client, is_so: Callable[[list[Any]], bool]) -> None:
    """Waits until the tokens are as expected: a broker of Apache Kafka applies a change after the response."""
    deadline = time.monotonic() + 20
    while not is_so(describe(client)["Tokens"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def creations(port: int, clients: Mapping[str, Client]) -> Iterator[Any]:
    alice, admin = clients["alice"], clients["admin"]
    for version in (1, 2, 3):
        yield create(alice, version, Renewers=[principal("bob")])
    for lifetime_ms in (0, -5, 1_000_000, 10**12):
        yield create(admin, MaxLifetimeMs=lifetime_ms)
    for owner in (
        {"OwnerPrincipalType": "User", "OwnerPrincipalName": "carol"},
        {"OwnerPrincipalType": "User", "OwnerPrincipalName": ""},
        {"OwnerPrincipalType": "User", "OwnerPrincipalName": "alice"},
        {"OwnerPrincipalType": "Group", "OwnerPrincipalName": "carol"},
    ):
        yield create(alice, **owner)
        yield create(admin, **owner)
    yield create(alice, OwnerPrincipalType="User", OwnerPrincipalName=None)
    yield create(alice, Renewers=[principal("bob"), principal("staff", "Group")])
    yield create(Client(("127.0.0.1", port)))


def walk(ports: Mapping[str, int]) -> list[Any]:
    """Returns the responses to all requests about tokens, each in its order."""
    found: list[Any] = []
    seen = Comparable()
    clients = {user: plain(ports["SASL"], user) for user in USERS}
    nobody = Client(("127.0.0.1", ports["PLAINTEXT"]))
    made = list(creations(ports["PLAINTEXT"], clients))
    found += map(seen.answer, made)
    created = [each for each in made if not each["ErrorCode"]]
    secret = bytes(created[0]["Hmac"])
    await_tokens(clients["admin"], lambda tokens: len(tokens) == len(created))
    for client in (*clients.values(), nobody):
        for owners in (None, [], [principal("alice")], [principal("bob")], [principal("nobody"), principal("carol")]):
            for version in (1, 3):
                found.append(seen.described(describe(client, owners, version)))
    for client in (*clients.values(), nobody):
        for change in (renew, expire):
            for period_ms in (0, 60_000, 10**12, -1) if change is renew else (60_000, 10**12):
                found.append(seen.answer(change(client, secret, period_ms)))
            found.append(seen.answer(change(client, b"unknown", 5)))
    expires_ms = renew(clients["bob"], secret, 10**12)["ExpiryTimestampMs"]
    await_tokens(clients["admin"], lambda tokens: any(each["ExpiryTimestamp"] == expires_ms for each in tokens))
    found += logins(ports["SASL"], clients, created[0], seen)
    return found


def logins(port: int, clients: Mapping[str, Client], token: Any, seen: Comparable) -> Iterator[Any]:
    """Yields which logins by a token succeed, while it is valid and afterwards."""
    name, password = token["TokenId"], base64.b64encode(bytes(token["Hmac"])).decode()
    by_token, last = scram(port, name, password)
    yield last["ErrorCode"], last["SessionLifetimeMs"] // 10_000_000
    yield (
        seen.answer(create(by_token)),
        seen.answer(describe(by_token)),
        seen.answer(renew(by_token, b"", 5)),
        seen.answer(expire(by_token, b"", 5)),
    )
    for wrong in (
        scram(port, name, password + "x"),
        scram(port, name, password, ""),
        scram(port, name, password, ",tokenauth=false"),
        scram(port, "unknown", password),
    ):
        yield seen.answer(wrong[1])
    yield seen.answer(expire(clients["bob"], bytes(token["Hmac"]), -1))
    await_tokens(clients["admin"], lambda tokens: all(each["TokenId"] != name for each in tokens))
    yield seen.answer(scram(port, name, password)[1])
    yield seen.answer(renew(clients["bob"], bytes(token["Hmac"]), 5))


def test_delegation_tokens_are_apache_kafkas(brokers: Brokers) -> None:
    theirs, ours = walk(brokers.apache), walk(brokers.barnabas)
    assert len(ours) == len(theirs)
    differing = [(at, *pair) for at, pair in enumerate(zip(theirs, ours, strict=True)) if pair[0] != pair[1]]
    assert not differing


def test_tokens_are_handed_over(tmp_path: Path) -> None:
    """Clients log in at each broker by tokens that the other made on the same directory."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(KeySet([KEY]).as_dict(private=False)))
    properties = settings(keys)
    made: list[Any] = []

    def visit(ports: Mapping[str, int]) -> None:
        admin, alice = plain(ports["SASL"], "admin"), plain(ports["SASL"], "alice")
        await_tokens(admin, lambda tokens: {each["TokenId"] for each in tokens} == {each["TokenId"] for each in made})
        for token in made:
            _, last = scram(ports["SASL"], token["TokenId"], base64.b64encode(bytes(token["Hmac"])).decode())
            assert last["ErrorCode"] == 0
            assert renew(alice, bytes(token["Hmac"]), 60_000)["ErrorCode"] == 0
        made.append(create(alice, Renewers=[principal("bob")]))
        if len(made) > 2:
            assert expire(alice, bytes(made.pop(0)["Hmac"]), -1)["ErrorCode"] == 0
        await_tokens(admin, lambda tokens: len(tokens) == len(made))

    def at_barnabas() -> None:
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
        ports = add_listeners(listeners, int(listeners["listeners"].rpartition(":")[2]))
        barnabas = BarnabasProcess(tmp_path / "node", {**properties, **listeners, "node.id": "1"})
        barnabas.port = ports["PLAINTEXT"]
        barnabas.start()
        try:
            visit(ports)
        finally:
            barnabas.stop()

    at_barnabas()
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
    apache = ApacheKafka(tmp_path / "node", properties, options=(*HEAP, *quick(CURRENT), allowed))
    ports = add_listeners(apache.properties, apache.port)
    apache.start()
    try:
        visit(ports)
    finally:
        apache.stop()
    at_barnabas()


# ---------------------------------------------------------------- OAUTHBEARER

NOW = int(time.time())


def part(values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


def unsecured(header: Any = None, signature: str = "", **changes: Any) -> str:
    claims = {"sub": "alice", "iat": NOW - 100, "exp": NOW + 3600, "scope": "read", **changes}
    claims = {name: value for name, value in claims.items() if value != "left out"}
    return f"{part(header or {'alg': 'none'})}.{part(claims)}.{signature}"


def signed(key: RSAKey = KEY, algorithm: str = "RS256", **changes: Any) -> str:
    claims = {
        "sub": "alice", "iat": NOW - 100, "exp": NOW + 3600, "aud": "kafka", "iss": "https://issuer.example", **changes,
    }  # fmt: skip
    claims = {name: value for name, value in claims.items() if value != "left out"}
    return jwt.encode({"alg": algorithm, "kid": key.kid}, claims, key, algorithms=[algorithm])


def message(token: str, header: str = "n,,", scheme: str = "Bearer", more: str = "") -> bytes:
    return f"{header}\x01auth={scheme} {token}\x01{more}\x01".encode()


COMMON = [
    b"",
    b"\x01",
    b"\xff\xfe",
    message("a.b.c"),
    message("no-token"),
    message("a token"),
    message("x", header="y,,"),
    message("x", scheme="Basic"),
    message("x", more="auth=y\x01"),
    b"n,,\x01other=Bearer x\x01\x01",
]

UNSECURED = [
    *COMMON,
    *map(
        message,
        [
            unsecured(),
            unsecured(exp=NOW - 1),
            unsecured(exp="left out"),
            unsecured(exp="soon"),
            unsecured(iat=NOW + 1000),
            unsecured(iat="left out"),
            unsecured(iat=NOW + 3600),
            unsecured(sub=""),
            unsecured(sub=7),
            unsecured(sub=None),
            unsecured(sub="left out"),
            unsecured(scope=["write", "read"]),
            unsecured(scope="write"),
            unsecured(scope="left out"),
            unsecured(signature="c2ln"),
            unsecured({"alg": "RS256"}),
            unsecured({"typ": "JWT"}),
            signed(),
        ],
    ),
    message(unsecured(), header="n,a=alice,"),
    message(unsecured(), header="n,a=bob,"),
    message(unsecured(), scheme="bearer", more="traceId=1 2\x01"),
    message(unsecured(), more="trace_id=1\x01"),
]

SIGNED = [
    *COMMON,
    *map(
        message,
        [
            signed(),
            signed(algorithm="PS384"),
            signed(aud=["other", "kafka"]),
            signed(aud="other"),
            signed(aud="left out"),
            signed(iss="other"),
            signed(iss="left out"),
            signed(exp=NOW - 1000),
            signed(exp="left out"),
            signed(iat="left out"),
            signed(iat=NOW + 4000),
            signed(iat=NOW + 1000),
            signed(nbf=NOW + 1000),
            signed(sub="left out"),
            signed(sub=" "),
            signed(sub=7),
            signed(scope=["a", "a"]),
            signed(scope="a b"),
            signed(STRANGER),
            signed() + "x",
            unsecured(),
        ],
    ),
    message(signed(), header="n,a=bob,"),
]


@pytest.mark.parametrize(("listener", "messages"), [("SASL", UNSECURED), ("SIGNED", SIGNED)])
def test_oauthbearer_is_apache_kafkas(brokers: Brokers, listener: str, messages: list[bytes]) -> None:
    def answers(port: int, sent: bytes) -> list[Any]:
        client = Client(("127.0.0.1", port)).handshake("OAUTHBEARER")
        first = client.token(sent)
        if isinstance(first, str):
            return [first]
        first["SessionLifetimeMs"] = round(first["SessionLifetimeMs"] / 60_000)
        return [first] if not first["AuthBytes"] else [first, client.token(b"\x01"), client.receive(10)]

    differing = []
    for sent in messages:
        theirs, ours = (answers(ports[listener], sent) for ports in brokers)
        if theirs != ours:
            differing.append((sent, theirs, ours))
    assert not differing
