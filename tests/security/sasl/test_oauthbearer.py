"""The messages of OAUTHBEARER, and unsecured tokens, held against what Apache Kafka answers."""

import base64
import json

import pytest

from barnabas.errors import CloseConnection
from barnabas.security.principals import Principal
from barnabas.security.sasl.mechanism import Authenticated, AuthenticationRefused
from barnabas.security.sasl.oauthbearer import OAuthBearer
from barnabas.security.sasl.unsecured_jws import UnsecuredValidator

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60}
INVALID = b'{"status":"invalid_token"}'


def part(values):
    text = values if isinstance(values, str) else json.dumps(values)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def unsecured(claims=None, header=None, signature="", **changes):
    claims = {**CLAIMS, **changes} if claims is None else claims
    return f"{part({'alg': 'none'} if header is None else header)}.{part(claims)}.{signature}"


def message(token, *, header="n,,", scheme="Bearer", extensions=""):
    return f"{header}\x01auth={scheme} {token}\x01{extensions}\x01".encode()


def begin(**options):
    validator = UnsecuredValidator({f"unsecuredValidator{name}": value for name, value in options.items()})
    return OAuthBearer(validator).begin(lambda: NOW_MS)


ALICE = Authenticated(Principal("User", "alice"), (NOW_S + 60) * 1000)


@pytest.mark.parametrize(
    "sent",
    [
        message(unsecured()),
        message(unsecured(), header="n,a=alice,"),
        message(unsecured(), scheme="bearer"),
        message(unsecured(), extensions="traceId=123\x01logicalCluster=a b\x01"),
        message(unsecured({"sub": "alice", "exp": NOW_S + 60})),
        message(unsecured(exp=NOW_S + 60.0)),
    ],
)
def test_a_client_is_let_in_until_its_token_expires(sent):
    assert begin().evaluate(sent) == (b"", ALICE)


@pytest.mark.parametrize(
    "token",
    [
        unsecured(exp=NOW_S),
        unsecured({"sub": "alice"}),
        unsecured(exp="soon"),
        unsecured(exp=10**400),
        unsecured(iat=NOW_S + 1),
        unsecured(iat=NOW_S - 1, exp=NOW_S - 1),
        unsecured(sub=" "),
        unsecured(sub=7),
        unsecured({"exp": NOW_S + 60}),
        unsecured(scope=7),
        unsecured(signature="c2ln"),
        unsecured(header={"alg": "RS256"}),
        unsecured("[" * 100_000),
        unsecured('{"exp": NaN}'),
        "a.b.c",
        "no-token",
        "..",
    ],
)
def test_an_invalid_token_is_told_and_ends_with_the_next_message(token):
    exchange = begin()
    assert exchange.evaluate(message(token)) == (INVALID, None)
    with pytest.raises(AuthenticationRefused) as refusal:
        exchange.evaluate(b"\x01")
    assert str(refusal.value) == INVALID.decode()


def test_a_client_may_try_another_token_after_an_error():
    exchange = begin()
    exchange.evaluate(message(unsecured(exp=0)))
    assert exchange.evaluate(message(unsecured())) == (b"", ALICE)


def test_null_as_subject_is_a_text():
    _, result = begin().evaluate(message(unsecured(sub=None)))
    assert result.principal == Principal("User", "null")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x01",
        b"\xff\xfe",
        message(unsecured(), header="y,,"),
        message(unsecured(), header="n,a=a=b,"),
        message(unsecured()).rstrip(b"\x01"),
        message(unsecured(), extensions="auth=again\x01"),
        message(unsecured(), extensions="trace_id=1\x01"),
        message("a token"),
        b"n,,\x01other=Bearer x\x01\x01",
    ],
)
def test_a_malformed_message_is_refused(sent):
    with pytest.raises(AuthenticationRefused) as refusal:
        begin().evaluate(sent)
    assert str(refusal.value) == ""


def test_another_identity_is_refused():
    with pytest.raises(AuthenticationRefused, match=r"an authorization id .bob. that is different from .* .alice."):
        begin().evaluate(message(unsecured(), header="n,a=bob,"))


@pytest.mark.parametrize("sent", [message(unsecured(), scheme="Basic"), message(unsecured(header={"typ": "JWT"}))])
def test_the_connection_is_closed_where_apache_kafka_fails(sent):
    with pytest.raises(CloseConnection):
        begin().evaluate(sent)


def test_options():
    exchange = begin(PrincipalClaimName="name", ScopeClaimName="roles", AllowableClockSkewMs="2000")
    token = unsecured({"name": "bob", "exp": NOW_S - 1, "iat": NOW_S - 5})
    assert exchange.evaluate(message(token))[1].principal.name == "bob"


def test_required_scopes():
    options = {"RequiredScope": "read write"}
    assert begin(**options).evaluate(message(unsecured(scope=["write", "read", "more"])))[1] == ALICE
    for scope in ("read", ["read"], "read write", None):
        answer, result = begin(**options).evaluate(message(unsecured(scope=scope)))
        assert (answer, result) == (b'{"status":"insufficient_scope", "scope":"[read, write]"}', None)


@pytest.mark.parametrize(
    "options", [{"AllowableClockSkewMs": "-1"}, {"AllowableClockSkewMs": "x"}, {"RequiredScope": '"'}]
)
def test_options_that_are_not_valid(options):
    with pytest.raises(ValueError):
        begin(**options)


def test_a_token_is_validated_at_the_time_of_its_arrival():
    now = [NOW_MS]
    exchange = OAuthBearer(UnsecuredValidator({})).begin(lambda: now[0])
    now[0] += 2000
    _, result = exchange.evaluate(message(unsecured(iat=NOW_S + 1)))
    assert result == ALICE
