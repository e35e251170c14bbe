"""PLAIN: successful authentications, and the errors of failed ones."""

import pytest

from barnabas.security.principals import Principal
from barnabas.security.sasl.mechanism import AuthenticationRefused
from barnabas.security.sasl.plain import Plain

PLAIN = Plain({"username": "broker", "password": "b", "user_alice": "secret", "user_gr\xfc\xdf": "\xe4\0b"[:1]})


@pytest.mark.parametrize("token", ["\0alice\0secret", "alice\0alice\0secret", "\0gr\xfc\xdf\0\xe4"])
def test_let_in(token):
    answer, result = PLAIN.begin(lambda: 0).evaluate(token.encode())
    assert answer == b"" and result.principal == Principal("User", token.split("\0")[1])
    assert (result.expires_at_ms, result.by_token) == (None, False)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secre", "Authentication failed: Invalid username or password"),
        (b"\0bob\0secret", "Authentication failed: Invalid username or password"),
        (b"\0broker\0b", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0more", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 9, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\xff\0\xfe\0\xfd", "Authentication failed: Invalid username or password"),
    ],
)
def test_refused(token, text):
    with pytest.raises(AuthenticationRefused) as refusal:
        PLAIN.begin(lambda: 0).evaluate(token)
    assert str(refusal.value) == text
