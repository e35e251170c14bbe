"""SCRAM: the example of RFC 7677, its own client, and messages that Apache Kafka accepts or refuses."""

import base64
import hashlib
import hmac
from types import SimpleNamespace

import pytest

from barnabas.errors import CloseConnection
from barnabas.security.principals import Principal
from barnabas.security.sasl.mechanism import AuthenticationRefused
from barnabas.security.sasl.scram import HASHES, Scram, ScramExchange, TokenCredential, credential_of

OWNER = Principal("User", "owner")


class Users:
    """Credentials of some users and of one delegation token."""

    def of_user(self, name, mechanism):
        password = {"alice": b"secret", "a=b,c": b"odd", "user": b"pencil"}.get(name)
        return credential_of(mechanism, password, b"salt" * 4) if password else None

    def of_token(self, token_id, mechanism):
        if token_id != "tok":
            return None
        return TokenCredential(credential_of(mechanism, b"hmac", b"pepper"), OWNER, 7000)


def log_in(mechanism, first, password, *, final="c=biws,r={nonce}", tamper=lambda proof: proof):
    """Runs both messages of a client; returns the result."""
    exchange = Scram(mechanism, Users(), lambda size: b"n" * size).begin(lambda: 0)
    answer, result = exchange.evaluate(first.encode())
    assert result is None
    fields = dict(each.split("=", 1) for each in answer.decode().split(","))
    assert list(fields) == ["r", "s", "i"]
    hash_name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(hash_name, password, base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    without_proof = final.format(nonce=fields["r"])
    bare = first[first.index("n=", 2) :]
    signed = f"{bare},{answer.decode()},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), signed, hash_name)
    proof = base64.b64encode(tamper(bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))).decode()
    answer, result = exchange.evaluate(f"{without_proof},p={proof}".encode())
    server_key = hmac.digest(salted, b"Server Key", hash_name)
    assert answer == b"v=" + base64.b64encode(hmac.digest(server_key, signed, hash_name))
    return result


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(
    ("first", "name", "password"),
    [
        ("n,,n=alice,r=fyko", "alice", b"secret"),
        ("n,a=alice,n=alice,r=fyko", "alice", b"secret"),
        ("n,,n=a=3Db=2Cc,r=!x", "a=b,c", b"odd"),
        ("n,,n=alice,r=fyko,ext=some", "alice", b"secret"),
        ("n,,n=alice,r=fyko,tokenauth=false", "alice", b"secret"),
    ],
)
def test_let_in(mechanism, first, name, password):
    result = log_in(mechanism, first, password)
    assert result == (Principal("User", name), None, False)


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_token(mechanism):
    assert log_in(mechanism, "n,,n=tok,r=x,tokenauth=true", b"hmac") == (OWNER, 7000, True)


def test_any_channel_binding_is_taken():
    assert log_in("SCRAM-SHA-256", "n,,n=alice,r=x", b"secret", final="c=eSws,r={nonce}").principal.name == "alice"


def test_the_example_of_rfc_7677():
    exchange = ScramExchange("SCRAM-SHA-256", Rfc(), "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first, _ = exchange.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final, result = exchange.evaluate(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert result.principal == Principal("User", "user")


class Rfc:
    def of_user(self, name, mechanism):
        return credential_of(mechanism, b"pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))


@pytest.mark.parametrize(
    "first",
    [
        "n,,n=nobody,r=x",
        "n,,n=tok,r=x",
        "n,,n=none,r=x,tokenauth=true",
        "y,,n=alice,r=x",
        "p=tls-unique,,n=alice,r=x",
        "n,a=bob,n=alice,r=x",
        "n,,n=,r=x",
        "n,,n=alice,r=",
        "n,,n=al,ice,r=x",
        "n,,n=gr\xfc\xdf,r=x",
        "n,,n=alice",
        "",
        "\0alice\0secret",
    ],
)
def test_the_first_message_is_refused(first):
    exchange = Scram("SCRAM-SHA-512", Users(), lambda size: b"n" * size).begin(lambda: 0)
    with pytest.raises(AuthenticationRefused):
        exchange.evaluate(first.encode())


@pytest.mark.parametrize(
    "arguments",
    [
        {"password": b"wrong"},
        {"tamper": lambda proof: bytes(len(proof))},
        {"final": "c=biws,r=x"},
        {"final": "c=biws,r={nonce}x"},
        {"final": "c=biws,r={nonce},ext=some"},
        {"final": "r={nonce}"},
        {"final": "n,,n=alice,r=x"},
    ],
)
def test_the_final_message_is_refused(arguments):
    with pytest.raises(AuthenticationRefused):
        log_in("SCRAM-SHA-256", "n,,n=alice,r=x", **{"password": b"secret", **arguments})


@pytest.mark.parametrize("tamper", [lambda proof: proof[:-1], lambda proof: proof + b"x", lambda proof: b""])
def test_a_proof_of_another_length_has_no_answer(tamper):
    """Apache Kafka closes the connection."""
    with pytest.raises(CloseConnection):
        log_in("SCRAM-SHA-256", "n,,n=alice,r=x", b"secret", tamper=tamper)


@pytest.mark.parametrize("iterations", [0, 2**31 - 1])
def test_absurd_iterations_cost_the_broker_nothing(iterations):
    """The client computes them: the broker has the keys already."""
    credential = credential_of("SCRAM-SHA-256", b"secret", b"salt")._replace(iterations=iterations)
    users = SimpleNamespace(of_user=lambda name, mechanism: credential)
    answer, _ = Scram("SCRAM-SHA-256", users, bytes).begin(lambda: 0).evaluate(b"n,,n=alice,r=x")
    assert answer.endswith(b",i=%d" % iterations)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,n=" + b"a" * 500_000,
        b"n,,n=" + b"=2C" * 170_000,
        b"n,,n=alice,r=" + b"x" * 500_000 + b"\1",
        b"n,,n=alice,r=x" + b",a=b" * 125_000 + b",",
        b"n,a=" + b"=3D" * 170_000 + b",",
    ],
)
def test_a_long_message_is_refused(message):
    with pytest.raises(AuthenticationRefused):
        Scram("SCRAM-SHA-256", Users(), bytes).begin(lambda: 0).evaluate(message)


def test_no_secret_is_shown():
    assert "salt" not in repr(Users().of_user("alice", "SCRAM-SHA-256"))
