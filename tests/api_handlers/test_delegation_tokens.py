"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken, without a socket."""

import pytest

from barnabas.api_handlers.create_delegation_token import create_delegation_token
from barnabas.api_handlers.describe_delegation_token import describe_delegation_token
from barnabas.api_handlers.expire_delegation_token import expire_delegation_token
from barnabas.api_handlers.renew_delegation_token import renew_delegation_token
from barnabas.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenNotFound,
    DelegationTokenRequestNotAllowed,
    InvalidPrincipalType,
)
from barnabas.security.principals import Principal
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.asking import context_of, handled

from .conftest import ConfigCluster

HANDLERS = {
    CreateDelegationTokenRequest: create_delegation_token,
    RenewDelegationTokenRequest: renew_delegation_token,
    ExpireDelegationTokenRequest: expire_delegation_token,
    DescribeDelegationTokenRequest: describe_delegation_token,
}


class Node(ConfigCluster):
    """A cluster with tokens, and sessions of its users."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.authorizer = None

    def ask(self, request, user="alice", *, protocol="SASL_PLAINTEXT", by_token=False):
        context = context_of(self, 2)
        context.session.principal = Principal("User", user)
        context.session.security_protocol, context.session.by_token = protocol, by_token
        return handled(HANDLERS[type(request)], request, context)

    def describe(self, *owners, user="alice", everybody=False):
        owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
        wanted = None if everybody else [owner(principal_type="User", principal_name=name) for name in owners]
        response = self.ask(DescribeDelegationTokenRequest(owners=wanted), user)
        assert response.error_code == 0
        return [each.principal_name for each in response.tokens]


@pytest.fixture
def node():
    return Node(**{"delegation.token.secret.key": "a secret key"})


def wanted(owner=None, *, owner_type="User", renewers=(), renewer_type="User"):
    renewer = CreateDelegationTokenRequest.CreatableRenewers
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else owner_type,
        owner_principal_name=owner,
        renewers=[renewer(principal_type=renewer_type, principal_name=name) for name in renewers],
        max_lifetime_ms=-1,
    )


def test_the_life_of_a_token(node):
    token = node.ask(wanted(renewers=["bob"]))
    assert (token.error_code, token.principal_type, token.principal_name) == (0, "User", "alice")
    assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "alice")
    renewed = node.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5), "bob")
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, token.issue_timestamp_ms + 5)
    (seen,) = node.ask(DescribeDelegationTokenRequest(owners=None)).tokens
    assert (seen.token_id, seen.hmac) == (token.token_id, token.hmac)
    assert (seen.expiry_timestamp, seen.max_timestamp) == (renewed.expiry_timestamp_ms, token.max_timestamp_ms)
    assert [(each.principal_type, each.principal_name) for each in seen.renewers] == [("User", "bob")]
    ended = node.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
    assert (ended.error_code, ended.expiry_timestamp_ms) == (0, token.issue_timestamp_ms)
    again = node.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
    assert (again.error_code, again.expiry_timestamp_ms) == (DelegationTokenNotFound.code, 0)


@pytest.mark.parametrize("session", [{"protocol": "PLAINTEXT"}, {"by_token": True}])
def test_a_session_that_may_not_ask(node, session):
    created = node.ask(wanted("carol"), **session)
    assert created.error_code == DelegationTokenRequestNotAllowed.code
    assert (created.principal_name, created.token_requester_principal_name) == ("carol", "alice")
    assert (created.issue_timestamp_ms, created.token_id, created.hmac) == (-1, "", b"")
    renewed = node.ask(RenewDelegationTokenRequest(hmac=b"", renew_period_ms=5), **session)
    expired = node.ask(ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=5), **session)
    seen = node.ask(DescribeDelegationTokenRequest(owners=None), **session)
    assert {renewed.error_code, expired.error_code, seen.error_code} == {DelegationTokenRequestNotAllowed.code}
    assert {renewed.expiry_timestamp_ms, expired.expiry_timestamp_ms} == {-1}


def test_a_token_for_another_owner(node):
    """Without an authorizer everyone may create one."""
    token = node.ask(wanted("carol"))
    assert (token.principal_name, token.token_requester_principal_name) == ("carol", "alice")
    assert node.ask(wanted("")).principal_name == "alice"


def test_a_renewer_is_a_user(node):
    refused = node.ask(wanted(renewers=["bob"], renewer_type="Group"))
    assert (refused.error_code, refused.principal_name) == (InvalidPrincipalType.code, "alice")


def test_without_a_secret_key():
    node = Node()
    assert node.ask(wanted()).error_code == DelegationTokenAuthDisabled.code
    assert (node.ask(wanted()).principal_name, node.ask(wanted()).issue_timestamp_ms) == ("alice", 0)
    for request in (
        RenewDelegationTokenRequest(hmac=b"", renew_period_ms=5),
        ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=5),
        DescribeDelegationTokenRequest(owners=[]),
    ):
        assert node.ask(request).error_code == DelegationTokenAuthDisabled.code


def test_which_tokens_are_listed(node):
    node.ask(wanted(renewers=["bob"]))
    node.ask(wanted("carol"))
    assert sorted(node.describe(everybody=True)) == ["alice", "carol"]
    assert node.describe() == []
    assert node.describe("bob") == ["alice"]
    assert sorted(node.describe("alice")) == ["alice", "carol"]  # alice is the requester of both
    assert node.describe("dave") == []
