"""The gate of a SASL listener: the requests that each state accepts, and the errors of others."""

from collections import Counter
from types import SimpleNamespace

import pytest

from barnabas.api_handlers.registry import APIS, Promise
from barnabas.api_handlers.session import Session
from barnabas.clock import ManualClock
from barnabas.errors import CloseConnection
from barnabas.security.principals import Principal
from barnabas.security.sasl.mechanism import Authenticated
from barnabas.security.sasl.mechanisms import Enabled
from barnabas.security.sasl.plain import Plain
from barnabas.server.connection import LastAnswer
from barnabas.server.dispatch import Dispatcher
from barnabas.server.sasl import SaslGate, SaslSettings
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.raw import framed

ALICE, BOB = b"\0alice\0secret", b"\0bob\0hush"
HELLO = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
FIND = FindCoordinatorRequest(key_type=0, key="g", coordinator_keys=["g"])


class Expiring(Plain):
    """PLAIN whose credentials expire 500 ms after the authentication."""

    def begin(self, time_ms):
        self.time_ms = time_ms
        return self

    def evaluate(self, token):
        _, result = super().evaluate(token)
        return b"", Authenticated(result.principal, self.time_ms() + 500)


class Peer:
    """A client of one gate, and its broker."""

    def __init__(self, max_reauth_ms=0, version=1):
        self.clock = ManualClock()
        self.version = version
        plain = Plain({"user_alice": "secret", "user_bob": "hush"})
        mechanisms = {
            "PLAIN": Enabled(plain, max_reauth_ms),
            "EXPIRING": Enabled(Expiring({"user_alice": "secret"}), max_reauth_ms),
        }
        self.session = Session(listener="SASL", client_host="10.0.0.7", promise=Promise(APIS))
        broker = SimpleNamespace(
            clock=self.clock, quotas=None, authorizer=None, supported_features={}, finalized_features={},
            image=SimpleNamespace(offset=7), quorum=SimpleNamespace(is_leader=True),
        )  # fmt: skip
        settings = SaslSettings(mechanisms, self.clock, self.clock, 0.1, 1000, Counter(), Counter())
        self.gate = SaslGate(Dispatcher(broker, self.session), settings)

    def bytes_of(self, frame):
        """Returns the response to a frame, and whether the connection is closed then."""
        try:
            answer = self.gate.respond(memoryview(frame))
        except CloseConnection as reason:
            assert not isinstance(reason, LastAnswer)
            return b"", True
        if not isinstance(answer, list):
            outcomes = []
            answer.then(outcomes.append)
            assert not outcomes
            self.clock.advance(0.1)
            with pytest.raises(LastAnswer) as reason:
                self.gate.encode(outcomes[0])
            return b"".join(reason.value.answer), True
        return b"".join(answer), False

    def ask(self, request, version):
        data, is_closed = self.bytes_of(framed(request, version)[4:])
        response = type(request).response
        at = 8 + response.header_version(version)
        return response.decode(data, version=version, at=at) if data else None, is_closed

    def handshake(self, mechanism="PLAIN", version=1):
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token=ALICE):
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), self.version)

    def log_in(self, token=ALICE, mechanism="PLAIN"):
        assert self.handshake(mechanism)[0].error_code == 0
        return self.authenticate(token)[0]


@pytest.fixture
def peer():
    return Peer()


def test_a_client_logs_in(peer):
    assert peer.ask(HELLO, 3)[0].error_code == 0
    answer, _ = peer.handshake()
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", "EXPIRING"])
    answer, _ = peer.authenticate()
    assert (answer.error_code, answer.error_message, answer.auth_bytes, answer.session_lifetime_ms) == (0, "", b"", 0)
    assert (peer.session.principal, peer.session.sasl_mechanism) == (Principal("User", "alice"), "PLAIN")
    assert peer.ask(HELLO, 3)[0].error_code == 0
    assert peer.handshake() == (peer.handshake()[0], False)
    assert peer.handshake()[0].error_code == peer.authenticate()[0].error_code == 34


def test_only_until_then_requests_are_small(peer):
    assert peer.gate.max_request_bytes == 1000
    peer.log_in()
    assert peer.gate.max_request_bytes is None


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (FIND, 3),
        (SaslAuthenticateRequest(auth_bytes=ALICE), 2),
        (DescribeClusterRequest(include_cluster_authorized_operations=False), 0),
    ],
)
def test_another_first_request_closes(peer, request_, version):
    assert peer.ask(request_, version) == (None, True)


def test_api_versions_twice_closes(peer):
    peer.ask(HELLO, 0)
    assert peer.ask(HELLO, 0) == (None, True)


def test_api_versions_after_an_error(peer):
    data, _ = peer.bytes_of(framed(HELLO, 3, api_version=77)[4:])
    assert data[8:10] == b"\0\x23"
    bad = ApiVersionsRequest(client_software_name="", client_software_version="")
    assert peer.ask(bad, 3)[0].error_code == 42
    assert peer.ask(HELLO, 3)[0].error_code == 0
    assert peer.ask(HELLO, 3) == (None, True)


@pytest.mark.parametrize("name", ["plain", "PLAIN ", "", "SCRAM-SHA-256"])
def test_a_mechanism_that_is_not_enabled(peer, name):
    answer, is_closed = peer.handshake(name)
    assert (answer.error_code, answer.mechanisms, is_closed) == (33, ["PLAIN", "EXPIRING"], True)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_wrong_password(version):
    peer = Peer(version=version)
    peer.handshake()
    answer, is_closed = peer.authenticate(b"\0alice\0guess")
    assert (answer.error_code, is_closed) == (58, True)
    assert answer.error_message == "Authentication failed: Invalid username or password"


def test_a_token_without_sense(peer):
    peer.handshake()
    answer, is_closed = peer.authenticate(b"")
    text = "Invalid SASL/PLAIN response: expected 3 tokens, got 1"
    assert (answer.error_code, answer.error_message, is_closed) == (58, text, True)


@pytest.mark.parametrize(("request_", "version"), [(FIND, 3), (HELLO, 3), (SaslHandshakeRequest(mechanism="PLAIN"), 1)])
def test_another_request_amid_the_exchange(peer, request_, version):
    peer.handshake()
    answer, is_closed = peer.ask(request_, version)
    assert (answer.error_code, is_closed) == (34, True)


def test_metadata_amid_the_exchange_has_no_place_for_an_error(peer):
    peer.handshake()
    answer, is_closed = peer.ask(MetadataRequest(topics=[]), 9)
    assert (answer.brokers, answer.topics, is_closed) == ([], [], True)


# ---------------------------------------------------------------- bare tokens


def test_bare_tokens(peer):
    peer.handshake(version=0)
    assert peer.bytes_of(ALICE) == (bytes(4), False)
    assert peer.session.principal.name == "alice"
    assert peer.ask(HELLO, 0)[0].error_code == 0


@pytest.mark.parametrize("token", [b"\0alice\0guess", framed(SaslAuthenticateRequest(auth_bytes=ALICE), 0)[4:]])
def test_bare_tokens_are_refused_without_a_word(peer, token):
    peer.handshake(version=0)
    assert peer.bytes_of(token) == (b"", True)


# ---------------------------------------------------------------- the length of sessions (KIP-368)


def test_a_session_ends_with_the_next_request():
    peer = Peer(max_reauth_ms=1000)
    assert peer.log_in().session_lifetime_ms == 1000
    peer.clock.advance(0.999)
    assert peer.ask(HELLO, 0)[0].error_code == 0
    peer.clock.advance(0.001)
    assert peer.ask(HELLO, 0) == (None, True)


def test_version_0_is_not_told():
    peer = Peer(max_reauth_ms=1000, version=0)
    assert peer.log_in().session_lifetime_ms == 0
    peer.clock.advance(1)
    assert peer.ask(HELLO, 0) == (None, True)


@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_client_authenticates_again(after):
    peer = Peer(max_reauth_ms=1000)
    peer.log_in()
    peer.clock.advance(after)
    assert peer.log_in().session_lifetime_ms == 1000
    peer.clock.advance(0.9)
    assert peer.ask(HELLO, 0)[0].error_code == 0


def test_but_once_a_second():
    peer = Peer(max_reauth_ms=10_000)
    peer.log_in()
    peer.log_in()
    peer.clock.advance(0.9)
    assert peer.handshake()[0].error_code == 34
    peer.clock.advance(0.1)
    peer.log_in()


def test_not_as_another_user():
    peer = Peer(max_reauth_ms=1000)
    peer.log_in()
    peer.handshake()
    answer, is_closed = peer.authenticate(BOB)
    assert (answer.error_code, is_closed) == (58, True)
    assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert peer.session.principal.name == "alice"


def test_not_by_another_mechanism():
    peer = Peer(max_reauth_ms=1000)
    peer.log_in()
    assert peer.handshake("EXPIRING")[0].error_code == 0
    assert peer.authenticate() == (None, True)


def test_not_by_a_mechanism_that_is_not_enabled():
    peer = Peer(max_reauth_ms=10_000)
    peer.log_in()
    assert peer.handshake("nope") == (None, True)


def test_not_as_another_user_with_bare_tokens():
    peer = Peer(max_reauth_ms=1000)
    peer.log_in()
    peer.handshake(version=0)
    assert peer.bytes_of(BOB) == (b"", True)
    assert peer.session.principal.name == "alice"


def test_not_by_another_mechanism_with_bare_tokens():
    peer = Peer(max_reauth_ms=1000)
    peer.log_in()
    peer.handshake("EXPIRING", version=0)
    assert peer.bytes_of(ALICE) == (b"", True)


def test_no_request_amid_the_exchange():
    peer = Peer(max_reauth_ms=1000)
    peer.log_in()
    peer.handshake()
    answer, is_closed = peer.ask(FIND, 3)
    assert (answer.error_code, is_closed) == (34, True)


@pytest.mark.parametrize(("max_reauth_ms", "lifetime_ms"), [(0, 500), (200, 200), (9000, 500)])
def test_a_credential_that_ends(max_reauth_ms, lifetime_ms):
    peer = Peer(max_reauth_ms)
    assert peer.log_in(mechanism="EXPIRING").session_lifetime_ms == lifetime_ms
    peer.clock.advance(lifetime_ms / 1000)
    assert peer.ask(HELLO, 0) == (None, True)
