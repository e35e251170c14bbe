"""Who may use a delegation token."""

import pytest

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
