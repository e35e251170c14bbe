"""Delegation tokens: their lifetime, the principals that may renew them, and their records."""

import pytest

from barnabas.cluster.controller.commands.features import FeatureUpdate, UpdateFeatures
from barnabas.cluster.controller.commands.tokens import (
    CreateDelegationToken,
    ExpireDelegationToken,
    RemoveExpiredTokens,
    RenewDelegationToken,
)
from barnabas.cluster.controller.token_decisions import MAX_REMOVALS
from barnabas.cluster.features import DELEGATION_TOKENS, METADATA_VERSION
from barnabas.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    UnsupportedVersion,
)
from barnabas.security.tokens import hmac_of
from barnabas.wire.messages.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
DAY_MS = 86_400_000
SECRET = {"delegation.token.secret.key": "a secret key"}


@pytest.fixture
def cluster(make_cluster):
    cluster = make_cluster(**SECRET)
    cluster.time_ms = 1_000_000
    return cluster


def create(cluster, owner=ALICE, requester=ALICE, renewers=(BOB,), max_lifetime_ms=-1):
    return cluster.submit(CreateDelegationToken(owner, requester, renewers, max_lifetime_ms))


def test_a_token_is_written_as_apache_kafka_writes_it(cluster):
    token, hmac = create(cluster, requester=CAROL)
    assert cluster.records == [
        DelegationTokenRecord(
            owner=ALICE,
            requester=CAROL,
            renewers=[BOB],
            issue_timestamp=1_000_000,
            max_timestamp=1_000_000 + 7 * DAY_MS,
            expiration_timestamp=1_000_000 + DAY_MS,
            token_id=token.token_id,
        )
    ]
    assert len(token.token_id) == 22
    assert len(hmac) == 64 and hmac == hmac_of(token.token_id, "a secret key")
    assert cluster.image.tokens[token.token_id] == token


@pytest.mark.parametrize(
    ("wanted_ms", "ends_ms"), [(-1, 7 * DAY_MS), (0, 7 * DAY_MS), (8 * DAY_MS, 7 * DAY_MS), (1000, 1000)]
)
def test_the_end_of_a_token(cluster, wanted_ms, ends_ms):
    token, _ = create(cluster, max_lifetime_ms=wanted_ms)
    assert token.max_timestamp - token.issue_timestamp == ends_ms
    assert token.expiration_timestamp - token.issue_timestamp == min(ends_ms, DAY_MS)


@pytest.mark.parametrize(("period_ms", "after_ms"), [(-1, DAY_MS), (0, DAY_MS), (5, 5), (9 * DAY_MS, DAY_MS)])
def test_a_token_is_renewed(cluster, period_ms, after_ms):
    token, hmac = create(cluster)
    cluster.time_ms += 100
    expires_at_ms = cluster.submit(RenewDelegationToken(hmac, BOB, period_ms))
    assert expires_at_ms == cluster.time_ms + after_ms
    assert cluster.image.tokens[token.token_id].expiration_timestamp == expires_at_ms
    assert token.expiration_timestamp != expires_at_ms  # the older image has not changed


def test_no_renewal_goes_beyond_the_end(cluster):
    token, hmac = create(cluster, max_lifetime_ms=1000)
    cluster.time_ms += 1000
    assert cluster.submit(RenewDelegationToken(hmac, ALICE)) == token.max_timestamp
    assert cluster.submit(ExpireDelegationToken(hmac, ALICE, DAY_MS)) == token.max_timestamp


@pytest.mark.parametrize("command", [RenewDelegationToken, ExpireDelegationToken])
def test_refusals(cluster, command):
    _, hmac = create(cluster, requester=CAROL)
    with pytest.raises(DelegationTokenNotFound):
        cluster.submit(command(b"another", ALICE, 5))
    with pytest.raises(DelegationTokenOwnerMismatch):
        cluster.submit(command(hmac, CAROL, 5))
    cluster.time_ms += DAY_MS + 1
    with pytest.raises(DelegationTokenExpired):
        cluster.submit(command(hmac, ALICE, 5))
    assert hmac.hex() not in repr(command(hmac, ALICE, 5)) and repr(hmac) not in repr(command(hmac, ALICE, 5))


def test_the_order_of_refusals(cluster):
    """Apache Kafka checks the expiry first to renew a token, and the requester first to expire it."""
    _, hmac = create(cluster)
    cluster.time_ms += DAY_MS + 1
    with pytest.raises(DelegationTokenExpired):
        cluster.submit(RenewDelegationToken(hmac, CAROL))
    with pytest.raises(DelegationTokenOwnerMismatch):
        cluster.submit(ExpireDelegationToken(hmac, CAROL, 5))


def test_a_token_ends_at_once(cluster):
    token, hmac = create(cluster)
    assert cluster.submit(ExpireDelegationToken(hmac, BOB, -1)) == cluster.time_ms
    assert cluster.records == [RemoveDelegationTokenRecord(token_id=token.token_id)]
    assert not cluster.image.tokens


def test_expired_tokens_are_removed(cluster):
    create(cluster)
    short, _ = create(cluster, max_lifetime_ms=10)
    cluster.time_ms += 10
    assert cluster.submit(RemoveExpiredTokens()) is False
    assert cluster.records == []
    cluster.time_ms += 1
    cluster.submit(RemoveExpiredTokens())
    assert cluster.records == [RemoveDelegationTokenRecord(token_id=short.token_id)]


def test_expired_tokens_are_removed_in_portions(cluster):
    for _ in range(MAX_REMOVALS + 1):
        create(cluster, max_lifetime_ms=10)
    cluster.time_ms += 11
    assert [cluster.submit(RemoveExpiredTokens()) for _ in range(2)] == [True, False]
    assert not cluster.image.tokens


def test_without_a_secret_key_there_are_no_tokens(make_cluster):
    with pytest.raises(DelegationTokenAuthDisabled):
        create(make_cluster())


def test_an_old_metadata_version_has_no_tokens(cluster):
    older = FeatureUpdate(METADATA_VERSION, DELEGATION_TOKENS - 1, 3)
    cluster.image = cluster.image._replace(features={**cluster.image.features, METADATA_VERSION: older.level})
    assert UpdateFeatures([older])
    with pytest.raises(UnsupportedVersion):
        create(cluster)
