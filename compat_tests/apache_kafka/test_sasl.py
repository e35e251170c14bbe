"""SASL on Apache Kafka and on Barnabas: the same bytes to both, the same responses from both."""

import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .sasl_pair import CLOSED, LIFETIME_MS, MECHANISMS, PASSWORDS, Pair, Scram, Talk, both, log_in, pair

Script = Callable[[Talk], object]
Brokers = tuple[Pair, Pair]

PLAIN_ALICE = b"\0alice\0alice-secret"


@pytest.fixture(scope="module")
def brokers(kafka_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with pair(tmp_path_factory.mktemp("sasl")) as brokers:
        yield brokers


def steps(*each: Script) -> Script:
    def script(talk: Talk) -> None:
        for step in each:
            step(talk)
            if talk.heard and talk.heard[-1] == CLOSED:
                return

    return script


def handshake(mechanism: str = "PLAIN", version: int = 1) -> Script:
    return lambda talk: talk.handshake(mechanism, version)


def token(data: bytes = PLAIN_ALICE, version: int = 2) -> Script:
    return lambda talk: talk.authenticate(data, version)


def bare(data: bytes = PLAIN_ALICE) -> Script:
    """Sends a frame that is only a token, as after a handshake of version 0."""
    return lambda talk: talk.raw(data)


def ask(api: str, version: int, **body: Any) -> Script:
    return lambda talk: talk.ask(api, version, **body)


def who(talk: Talk) -> None:
    talk.who()


def api_versions(version: int = 3) -> Script:
    """Sends ApiVersions; only the error code is compared, since the two serve different APIs."""

    def step(talk: Talk) -> None:
        body = {"ClientSoftwareName": "compat", "ClientSoftwareVersion": "1"}
        answer = talk.ask("ApiVersions", version, **body)
        talk.heard[-1] = answer if isinstance(answer, str) else answer["ErrorCode"]

    return step


def odd_versions(version: int, name: str = "compat") -> Script:
    """Sends ApiVersions of an unknown version, or with an invalid client name."""

    def step(talk: Talk) -> None:
        texts = bytes([len(name) + 1]) + name.encode() + b"\x021"
        answer = talk.raw(struct.pack(">hhi", 18, version, 1) + b"\0\1x\0" + texts + b"\0")
        talk.heard[-1] = answer if answer == CLOSED else answer[:12]

    return step


def header(api_key: int, version: int, rest: bytes = b"") -> Script:
    return bare(struct.pack(">hhi", api_key, version, 1) + b"\0\1x" + rest)


def longer_handshake(talk: Talk) -> None:
    """Sends a handshake with additional bytes in its frame."""
    data = struct.pack(">hhi", 17, 1, 1) + b"\0\1x\0\5PLAINmore"
    talk.connection.correlation_id = 1
    talk.connection.send(struct.pack(">i", len(data)) + data)
    talk.receive("SaslHandshake", 1)


STRANGERS = {
    "metadata": ("Metadata", 12, {"Topics": []}),
    "old metadata": ("Metadata", 1, {"Topics": []}),
    "find a coordinator": ("FindCoordinator", 0, {"Key": "x"}),
    "find a coordinator, flexible": ("FindCoordinator", 4, {"KeyType": 0, "CoordinatorKeys": ["x"]}),
    "list groups": ("ListGroups", 4, {"StatesFilter": []}),
    "delete groups": ("DeleteGroups", 2, {"GroupsNames": ["x"]}),
    "init a producer id": ("InitProducerId", 4, {"TransactionalId": None, "TransactionTimeoutMs": 1000}),
    "describe credentials": ("DescribeUserScramCredentials", 0, {"Users": [{"Name": "x"}]}),
    "describe the cluster": ("DescribeCluster", 1, {}),
}

STATES: dict[str, Script] = {
    "let in": steps(api_versions(), handshake(), token(), who, api_versions()),
    "let in, version 0": steps(handshake(), token(version=0), who),
    "let in, version 1": steps(handshake(), token(version=1), who),
    "let in by bare tokens": steps(handshake(version=0), bare(), who),
    "refused by bare tokens": steps(handshake(version=0), bare(b"\0alice\0wrong"), who),
    "versions first, bare tokens": steps(api_versions(0), handshake(version=0), bare(), who),
    "a request in place of a bare token": steps(handshake(version=0), token(), who),
    "a request in place of a bare token, old": steps(handshake(version=0), ask("Metadata", 1, Topics=[])),
    "no handshake": steps(token(), who),
    "no handshake, but versions": steps(api_versions(), token(), who),
    "versions twice": steps(api_versions(), api_versions()),
    "versions that there are not": steps(odd_versions(99), api_versions(), handshake(), token(), who),
    "versions that there are not, twice": steps(odd_versions(99), odd_versions(99), api_versions(), handshake()),
    "a name that is none": steps(odd_versions(3, "n/a!"), api_versions(), handshake(), token(), who),
    "versions after the handshake": steps(handshake(), api_versions(), token()),
    "a second handshake": steps(handshake(), handshake(), token()),
    "another mechanism": steps(handshake("SCRAM-SHA-256"), handshake(), token()),
    "the wrong mechanism's token": steps(handshake("SCRAM-SHA-256"), token()),
    **{f"mechanism {name!r}": steps(handshake(name), handshake()) for name in ("plain", "PLAIN ", "", "GSSAPI", "é")},
    "mechanism of bare tokens that there is not": steps(handshake("nope", 0), handshake()),
    "a handshake of version 9": steps(header(17, 9, b"\0\5PLAIN"), who),
    "a token of version 9": steps(handshake(), header(36, 9, b"\0\0\0\0"), who),
    "no request": steps(bare(b"")),
    "two bytes": steps(bare(b"\0\x11")),
    "an API that there is not": steps(header(999, 0)),
    "an API that there is not, later": steps(handshake(), header(999, 0)),
    "a negative API": steps(header(-1, 0)),
    "a handshake that is cut off": steps(header(17, 1, b"\0\5PL")),
    "a token that is cut off": steps(handshake(), header(36, 0, b"\0\0\0\5PL")),
    "a handshake with more after it": steps(longer_handshake, token()),
    "a handshake when let in": steps(handshake(), token(), handshake(version=0), who),
    "a token when let in": steps(handshake(), token(), token(), who),
    "a token by bare tokens when let in": steps(handshake(version=0), bare(), token(), who),
    "an unknown API when let in": steps(handshake(), token(), header(999, 0)),
    **{f"{name} first": steps(ask(api, v, **body)) for name, (api, v, body) in STRANGERS.items()},
    **{f"{name} after the versions": steps(api_versions(), ask(api, v, **body))
       for name, (api, v, body) in STRANGERS.items()},
    **{f"{name} after the handshake": steps(handshake(), ask(api, v, **body), token())
       for name, (api, v, body) in STRANGERS.items()},
}  # fmt: skip

TOKENS = {
    "of bob": b"\0bob\0bob-secret",
    "for oneself": b"alice\0alice\0alice-secret",
    "for another": b"bob\0alice\0alice-secret",
    "with a wrong password": b"\0alice\0wrong",
    "with a part of the password": b"\0alice\0alice-secre",
    "with more than the password": b"\0alice\0alice-secret ",
    "of nobody": b"\0carol\0alice-secret",
    "without a user": b"\0\0alice-secret",
    "without a password": b"\0alice\0",
    "of nothing": b"",
    "without separators": b"alice",
    "of one separator": b"alice\0alice-secret",
    "of three separators": b"\0alice\0alice-secret\0",
    "of separators": b"\0\0",
    "of four separators": b"\0\0\0\0",
    "that is no text": b"\0\xff\xfe\0\xff",
    "of 64 KiB": b"\0alice\0" + b"x" * 65536,
    "of another case": b"\0Alice\0alice-secret",
    "of an empty user of another": b"alice\0\0alice-secret",
}


def heard(brokers: Brokers, script: Script, listener: str = "sasl") -> tuple[Any, Any]:
    def run(ports: Pair) -> list[Any]:
        with Talk(getattr(ports, listener)) as talk:
            script(talk)
            return talk.heard

    return both(brokers, run)


@pytest.mark.parametrize("name", STATES)
def test_states(brokers: Brokers, name: str) -> None:
    theirs, ours = heard(brokers, STATES[name])
    assert ours == theirs


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_of_plain(brokers: Brokers, name: str) -> None:
    for version in (0, 1, 2):
        theirs, ours = heard(brokers, steps(handshake(), token(TOKENS[name], version), who))
        assert ours == theirs, version
    theirs, ours = heard(brokers, steps(handshake(version=0), bare(TOKENS[name]), who))
    assert ours == theirs


LARGE = (
    steps(handshake(), token(), who),
    steps(handshake(), token(b"\0alice\0" + b"x" * 90)),
    steps(handshake(), token(b"\0alice\0" + b"x" * 200)),
    steps(handshake(version=0), bare(b"\0alice\0" + b"x" * 93), who),
    steps(handshake(version=0), bare(b"\0alice\0" + b"x" * 94), who),
    steps(bare(b"x" * 101)),
    steps(handshake(), token(), token(b"x" * 200), who),
    steps(api_versions(), handshake("x" * 100)),
)


@pytest.mark.parametrize("script", LARGE)
def test_large_tokens(brokers: Brokers, script: Script) -> None:
    theirs, ours = heard(brokers, script, "strict")
    assert ours == theirs


def test_a_listener_without_sasl(brokers: Brokers) -> None:
    script = steps(handshake(), handshake(version=0), *(token(version=v) for v in (0, 1, 2)), who)
    theirs, ours = heard(brokers, script, "open")
    assert ours == theirs


# ---------------------------------------------------------------- SCRAM

ALICE = PASSWORDS["alice"]


def scram(
    user: str = "alice", password: str = ALICE, mechanism: str = "SCRAM-SHA-256", *, bent: dict[str, str] | None = None,
    **more: str,
) -> Script:  # fmt: skip
    def script(talk: Talk) -> None:
        log_in(talk, Scram(mechanism, user, password, **more), mechanism, **(bent or {}))
        if talk.heard[-1] != CLOSED:
            talk.who()

    return script


def first_again(talk: Talk) -> None:
    client = Scram("SCRAM-SHA-256", "alice", ALICE)
    talk.handshake("SCRAM-SHA-256")
    talk.authenticate(client.first)
    talk.heard.pop()
    talk.authenticate(client.first)
    talk.who()


def proof_of(data: bytes) -> Script:
    def script(talk: Talk) -> None:
        client = Scram("SCRAM-SHA-256", "alice", ALICE)
        talk.handshake("SCRAM-SHA-256")
        final = client.final(talk.authenticate(client.first)["AuthBytes"])
        talk.heard.pop()
        talk.authenticate(final.rpartition(b",p=")[0] + b",p=" + data)
        talk.who()

    return script


def final(data: bytes) -> Script:
    """Sends a final message, in which ``$`` is the nonce."""

    def script(talk: Talk) -> None:
        client = Scram("SCRAM-SHA-256", "alice", ALICE)
        talk.handshake("SCRAM-SHA-256")
        nonce = talk.authenticate(client.first)["AuthBytes"].partition(b",")[0].removeprefix(b"r=")
        talk.authenticate(data.replace(b"$", nonce))

    return script


SCRAMS: dict[str, Script] = {
    **{f"let in by {mechanism}": scram(mechanism=mechanism) for mechanism in MECHANISMS},
    "a wrong password": scram(password="wrong"),
    "nobody": scram("carol"),
    "no credential of this mechanism": scram("bob", PASSWORDS["bob"], "SCRAM-SHA-512"),
    "an empty user": scram(""),
    "a user that is not ASCII": scram("älice"),
    "a user with = that is not escaped": scram("a=b"),
    "another's name": scram(gs2="n,a=bob,"),
    "one's own name": scram(gs2="n,a=alice,"),
    "channel binding that the server has not": scram(gs2="y,,"),
    "channel binding": scram(gs2="p=tls-unique,,"),
    "m= in the header": scram(gs2="n,,m=x,"),
    "an empty nonce": scram(nonce=""),
    "an extension": scram(more=",x=y"),
    "tokenauth=false": scram(more=",tokenauth=false"),
    "tokenauth=true": scram(more=",tokenauth=true"),
    "tokenauth=maybe": scram(more=",tokenauth=maybe"),
    "another channel binding at the end": scram(bent={"binding": "eHl6"}),
    "an extension at the end": scram(bent={"more": ",x=y"}),
    "another nonce at the end": scram(bent={"more": "x"}),
    "the first message again": first_again,
    "an empty proof": proof_of(b""),
    "a short proof": proof_of(b"AAAA"),
    "a proof that is no base64": proof_of(b"!!!!"),
    **{f"first message {data[:20]!r} of {len(data)} bytes": steps(handshake("SCRAM-SHA-256"), token(data), who)
       for data in (b"", b"n,,", b"n,,n=alice", b"n,,r=abc,n=alice", b"x", b"\xff\xfe", b"n,,n=alice,r=a b",
                    b"n,,n=alice,r=" + b"x" * 60_000, b"n" * 65_536)},
    **{f"final message {data[:20]!r} of {len(data)} bytes": final(data)
       for data in (b"", b"c=biws", b"c=biws,r=$,p=", b"c=biws,r=$", b"p=AAAA", b"c=,r=$,p=AAAA", b"c=!,r=$,p=AAAA",
                    b"c=biws,r=$,x=y", b"c=biws,r=$,p=" + b"A" * 60_000, b"\xff", b"n,,n=alice,r=abc")},
}  # fmt: skip


@pytest.mark.parametrize("name", SCRAMS)
def test_scram(brokers: Brokers, name: str) -> None:
    theirs, ours = heard(brokers, SCRAMS[name])
    assert ours == theirs
    if name.startswith("let in"):
        assert ours[-2:] == ["proven", "served"]


# ---------------------------------------------------------------- the end of a session


def wait(seconds: float) -> Script:
    return lambda talk: time.sleep(seconds)


def longer(talk: Talk) -> None:
    time.sleep(LIFETIME_MS / 1000 + 0.3)


AGAIN: dict[str, Script] = {
    "held to it": steps(handshake(), token(), who, longer, who),
    "held to it, version 0": steps(handshake(), token(version=0), who, longer, who),
    "held to it, bare tokens": steps(handshake(version=0), bare(), who, longer, who),
    "versions after the end": steps(handshake(), token(), longer, api_versions()),
    "again at once": steps(handshake(), token(), handshake(), token(), who, handshake(), token(), who),
    "again after a second": steps(handshake(), token(), wait(1.5), handshake(), token(), wait(2.0), who),
    "again after the end": steps(handshake(), token(), longer, handshake(), token(), who),
    "again, by versions 0": steps(handshake(), token(version=0), handshake(version=0), token(version=0), who),
    "as another": steps(handshake(), token(), handshake(), token(TOKENS["of bob"]), who),
    "by another mechanism": steps(handshake(), token(), handshake("SCRAM-SHA-256"), token(b"n,,n=alice,r=abc")),
    "by a mechanism that there is not": steps(handshake(), token(), handshake("nope"), who),
    "with a wrong password": steps(handshake(), token(), handshake(), token(b"\0alice\0wrong"), who),
    "a handshake twice": steps(handshake(), token(), handshake(), handshake()),
    "metadata between": steps(handshake(), token(), handshake(), ask("Metadata", 1, Topics=[])),
    "a coordinator between": steps(handshake(), token(), handshake(), ask("FindCoordinator", 0, Key="x")),
    "versions between": steps(handshake(), token(), handshake(), api_versions()),
    "a token without a handshake": steps(handshake(), token(), token(), who),
    "SCRAM has its own": scram(),
    "SCRAM again": steps(scram(), scram()),
}


@pytest.mark.parametrize("name", AGAIN)
def test_again(brokers: Brokers, name: str) -> None:
    theirs, ours = heard(brokers, AGAIN[name], "short")
    assert ours == theirs


def test_a_client_who_is_refused_waits(brokers: Brokers) -> None:
    """The response comes after ``connection.failed.authentication.delay.ms``, 100 by default."""

    def took(ports: Pair) -> float:
        with Talk(ports.sasl) as talk:
            began = time.monotonic()
            talk.plain("alice", "wrong")
            return time.monotonic() - began

    assert all(seconds >= 0.1 for seconds in both(brokers, took))
