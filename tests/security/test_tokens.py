"""Delegation tokens as credentials, and who may use them."""

import base64
import hashlib
from random import Random

import pytest

from barnabas.security.principals import Principal
from barnabas.security.sasl.scram import keys_of
from barnabas.security.sasl.token_credentials import TokenCredentials
from barnabas.security.tokens import hmac_of, may_renew, may_request, may_see, token_of
from barnabas.wire.messages.metadata_records import DelegationTokenRecord

TOKEN = DelegationTokenRecord(
    owner="User:alice",
    requester="User:carol",
    renewers=["User:bob"],
    issue_timestamp=0,
    max_timestamp=20,
    expiration_timestamp=10,
    token_id="an id",
)


@pytest.mark.parametrize(
    ("security_protocol", "is_anonymous", "by_token", "allowed"),
    [
        ("PLAINTEXT", True, False, False),
        ("SSL", True, False, False),
        ("SSL", False, False, True),
        ("SASL_PLAINTEXT", False, False, True),
        ("SASL_SSL", False, False, True),
        ("SASL_SSL", False, True, False),
    ],
)
def test_who_may_ask(security_protocol, is_anonymous, by_token, allowed):
    assert may_request(security_protocol, is_anonymous, by_token) is allowed


def test_the_requester_sees_the_token_only():
    names = ("User:alice", "User:bob", "User:carol", "User:dave", "alice")
    assert [may_renew(TOKEN, name) for name in names] == [True, True, False, False, False]
    assert [may_see(TOKEN, name) for name in names] == [True, True, True, False, False]


def test_the_secret_finds_the_token():
    assert token_of([TOKEN], hmac_of("an id", "key"), "key") is TOKEN
    assert token_of([TOKEN], hmac_of("an id", "key"), "another key") is None
    assert token_of([TOKEN], b"", "key") is None


def test_the_credential_of_a_token():
    credentials = TokenCredentials("key", Random(0).randbytes)
    found = credentials.of(TOKEN, "SCRAM-SHA-256", 10)
    assert found is not None
    assert (found.owner, found.expires_at_ms) == (Principal("User", "alice"), 10)
    credential = found.credential
    password = base64.b64encode(hmac_of("an id", "key"))
    salted = hashlib.pbkdf2_hmac("sha256", password, credential.salt, 4096)
    assert (credential.stored_key, credential.server_key) == keys_of("SCRAM-SHA-256", salted)
    assert credentials.of(TOKEN, "SCRAM-SHA-256", 5) == found  # it is cached


def test_a_token_that_has_expired_lets_nobody_in():
    credentials = TokenCredentials("key", Random(0).randbytes)
    assert credentials.of(TOKEN, "SCRAM-SHA-512", 11) is None
    assert credentials.of(None, "SCRAM-SHA-512", 0) is None
