"""Random frames at a SASL listener, in any state: no client gets in without authentication."""

import asyncio
import random
import struct
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.api_handlers.registry import APIS, Promise
from barnabas.api_handlers.session import Session
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.errors import CloseConnection, MalformedMessage
from barnabas.security.principals import ANONYMOUS
from barnabas.security.sasl.mechanisms import Enabled
from barnabas.security.sasl.plain import Plain
from barnabas.security.sasl.scram import Scram, credential_of
from barnabas.server.dispatch import Dispatcher
from barnabas.server.sasl import SaslGate, SaslSettings
from barnabas.server.server import Server
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.raw import framed

SASL_KEYS = {17, 18, 36}
OWN = "listener.name.sasl_plaintext"
MODULES = "org.apache.kafka.common.security"
TOKENS = (
    b"", b"\0", b"\0alice\0wrong", b"n,,n=alice,r=abc", b"n,,n=nobody,r=abc", b"c=biws,r=abc,p=AAAA",
    b"n,,n=" + b"a" * 5000 + b",r=abc", b"n,,n=alice,r=abc" + b",x=y" * 2000, b"=2C" * 2000, b"\xff" * 300,
)  # fmt: skip


def frames_of_clients():
    """Frames that clients send before they are authenticated, complete ones, and some with wrong fields."""
    known = [framed(ApiVersionsRequest(client_software_name="x", client_software_version="1"), v) for v in range(5)]
    known += [framed(SaslHandshakeRequest(mechanism=name), version)
              for name in ("PLAIN", "SCRAM-SHA-256", "nope", "") for version in (0, 1)]  # fmt: skip
    known += [framed(SaslAuthenticateRequest(auth_bytes=token), version) for token in TOKENS for version in range(3)]
    known += [framed(MetadataRequest(topics=[]), version) for version in (0, 9, 13)]
    return [frame[4:] for frame in known] + list(TOKENS)


FRAMES = frames_of_clients()


class Users:
    def of_user(self, name, mechanism):
        return CREDENTIAL if name == "alice" else None

    def of_token(self, token_id, mechanism):
        return None


CREDENTIAL = credential_of("SCRAM-SHA-256", b"secret", b"salt")


def new_gate(max_reauth_ms):
    clock = ManualClock()
    mechanisms = {
        "PLAIN": Enabled(Plain({"user_alice": "secret"}), max_reauth_ms),
        "SCRAM-SHA-256": Enabled(Scram("SCRAM-SHA-256", Users(), bytes), max_reauth_ms),
    }
    session = Session(listener="SASL", client_host="10.0.0.7", promise=Promise(APIS))
    broker = SimpleNamespace(
        clock=clock, quotas=None, authorizer=None, supported_features={}, finalized_features={},
        image=SimpleNamespace(offset=7), quorum=SimpleNamespace(is_leader=True),
    )  # fmt: skip
    return SaslGate(
        Dispatcher(broker, session), SaslSettings(mechanisms, clock, clock, 0.1, 100_000, Counter(), Counter())
    ), session


def changed(frame, changes):
    """Returns the frame with some bytes replaced, removed or inserted."""
    data = bytearray(frame)
    for place, kind, byte in changes:
        at = place % (len(data) + 1)
        if kind == 0 and at < len(data):
            data[at] = byte
        elif kind == 1:
            del data[at:]
        else:
            data[at:at] = bytes([byte])
    return bytes(data)


CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 2), st.integers(0, 255)), max_size=3)
SENT = st.one_of(st.builds(changed, st.sampled_from(FRAMES), CHANGES), st.binary(max_size=200))


@settings(max_examples=300, deadline=None)
@given(st.lists(SENT, max_size=6))
def test_nobody_is_let_in_without_a_proof(frames):
    """A frame has a response, or closes the connection in one of the expected ways."""
    gate, session = new_gate(0)
    for frame in frames:
        try:
            answer = gate.respond(memoryview(frame))
        except (CloseConnection, MalformedMessage):
            break
        assert (session.principal, session.sasl_mechanism) == (ANONYMOUS, "")
        if not isinstance(answer, list):
            break  # refused: the connection closes after the delay


@settings(max_examples=300, deadline=None)
@given(st.lists(SENT, max_size=6))
def test_who_is_in_stays_who_he_is(frames):
    """Re-authentication with a wrong token does not change the principal."""
    gate, session = new_gate(10_000)
    for request in (SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")):
        gate.respond(memoryview(framed(request, 1)[4:]))
    for frame in frames:
        if len(frame) >= 2 and struct.unpack_from(">h", frame)[0] not in SASL_KEYS:
            continue  # requests behind the gate are tested elsewhere
        try:
            answer = gate.respond(memoryview(frame))
        except (CloseConnection, MalformedMessage):
            break
        assert str(session.principal) == "User:alice"
        if not isinstance(answer, list):
            break


# ---------------------------------------------------------------- over a socket

OURS = (
    framed(SaslHandshakeRequest(mechanism="PLAIN"), 1),
    framed(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 1),
)


def configs(directory, **more):
    return BrokerConfig.from_properties(
        {
            "log.dirs": str(directory),
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "connection.failed.authentication.delay.ms": "0",
            f"{OWN}.plain.sasl.jaas.config": f'{MODULES}.plain.PlainLoginModule required user_alice="secret";',
            f"{OWN}.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
            **more,
        }
    )


def some_frames(chance):
    """Returns the frames of one client, most of which are nearly valid; sometimes a wrong size."""
    for _ in range(chance.randint(1, 4)):
        frame = chance.choice(FRAMES)
        if chance.random() < 0.7:
            changes = [(chance.randrange(10_000), chance.randrange(3), chance.randrange(256)) for _ in range(2)]
            frame = changed(frame, changes)
        size = len(frame) if chance.random() < 0.95 else chance.choice((-1, 2**31 - 1, 1_000_000, 0))
        yield struct.pack(">i", size) + frame


async def a_stranger(port, chance):
    """Sends frames, and reads until either side closes. Returns the number of frames."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    frames = list(some_frames(chance))
    try:
        writer.write(b"".join(frames))
        await writer.drain()
        writer.write_eof()
        while await reader.read(65536):
            pass
    except OSError:
        pass
    finally:
        writer.close()
    return len(frames)


async def logs_in(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in OURS:
        writer.write(request)
        answer = await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        assert answer[4:6] == b"\0\0"
    writer.close()


async def a_silent_one(directory, said):
    """Sends these bytes, and nothing else; returns the received bytes."""
    server = Server(configs(directory, **{"connections.max.idle.ms": "50"}))
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.listeners[1].port)
        writer.write(said)
        async with asyncio.timeout(30):
            read = await reader.read()
        writer.close()
        return read
    finally:
        await server.stop()


@pytest.mark.parametrize(
    "said", [b"", b"\0\0", b"\0\0\0\x64\0\x11", OURS[0]], ids=["nothing", "a part", "more", "hello"]
)
def test_who_does_not_go_on_is_closed(tmp_path, said):
    read = asyncio.run(a_silent_one(tmp_path, said))
    assert bool(read) is (said == OURS[0])


def test_a_stranger_who_announces_much_is_closed(tmp_path):
    """``sasl.server.max.receive.size`` is half a megabyte; an authenticated client may send more."""
    assert asyncio.run(a_silent_one(tmp_path, struct.pack(">i", 524_289))) == b""


async def strangers(directory, total):
    server = Server(configs(directory))
    await server.start()
    try:
        port = server.listeners[1].port
        chance, sent = random.Random(15), 0
        while sent < total:
            sent += sum(await asyncio.gather(*(a_stranger(port, chance) for _ in range(20))))
        await logs_in(port)
    finally:
        await server.stop()


@pytest.mark.parametrize("total", [5_000, pytest.param(1_000_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_frames_over_a_socket(tmp_path, caplog, total):
    """No frame causes an error of ours, and a client can log in afterwards."""
    caplog.set_level("ERROR")
    asyncio.run(strangers(tmp_path, total))
    assert not caplog.records
