"""Decides on delegation tokens: their lifetimes, and who may renew and expire them.

Knows nothing of how clients authenticate with tokens. The rules are those of Apache Kafka's
``DelegationTokenControlManager`` (KIP-48).
"""

import copy
import logging

from barnabas.cluster.controller.commands.tokens import (
    CreateDelegationToken,
    ExpireDelegationToken,
    RemoveExpiredTokens,
    RenewDelegationToken,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.features import DELEGATION_TOKENS
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    UnsupportedVersion,
)
from barnabas.security.tokens import EXPIRY_TIME, MAX_LIFETIME, SECRET_KEY, hmac_of, is_expired, may_renew, token_of
from barnabas.uuids import random_uuid, uuid_text
from barnabas.wire.messages.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord

logger = logging.getLogger(__name__)

MAX_REMOVALS = 1000
"""The maximum number of tokens that one command removes (``MAX_RECORDS_PER_EXPIRATION``)."""


def secret_key_of(image: MetadataImage, around: Surroundings) -> str:
    """Returns the secret key of the cluster.

    :raises DelegationTokenAuthDisabled: the key is not configured
    :raises UnsupportedVersion: the metadata.version has no records of tokens
    """
    secret_key: str | None = around.settings[SECRET_KEY]
    if secret_key is None:
        raise DelegationTokenAuthDisabled
    if image.metadata_version < DELEGATION_TOKENS:
        raise UnsupportedVersion
    return secret_key


def create_token(command: CreateDelegationToken, image: MetadataImage, around: Surroundings) -> Decision:
    """Creates a token. The result is the token and its secret.

    :raises KafkaError: delegation tokens are disabled
    """
    secret_key = secret_key_of(image, around)
    now_ms, longest_ms = around.time_ms, around.settings[MAX_LIFETIME]
    lifetime_ms = min(command.max_lifetime_ms, longest_ms) if command.max_lifetime_ms > 0 else longest_ms
    token = DelegationTokenRecord(
        owner=command.owner,
        requester=command.requester,
        renewers=list(command.renewers),
        issue_timestamp=now_ms,
        max_timestamp=now_ms + lifetime_ms,
        expiration_timestamp=now_ms + min(lifetime_ms, around.settings[EXPIRY_TIME]),
        token_id=uuid_text(random_uuid(around.random.randbytes)),
    )
    return Decision([token], (token, hmac_of(token.token_id, secret_key)))


def renew_token(command: RenewDelegationToken, image: MetadataImage, around: Surroundings) -> Decision:
    """Extends the expiry of a token. The result is the new expiry.

    :raises KafkaError: the token is unknown or has expired, or the requester may not renew it
    """
    token = found(command.hmac, image, around)
    if is_expired(token, around.time_ms):
        raise DelegationTokenExpired
    if not may_renew(token, command.requester):
        raise DelegationTokenOwnerMismatch
    usual_ms = around.settings[EXPIRY_TIME]
    period_ms = min(command.period_ms, usual_ms) if command.period_ms > 0 else usual_ms
    return until(token, around.time_ms + period_ms)


def expire_token(command: ExpireDelegationToken, image: MetadataImage, around: Surroundings) -> Decision:
    """Sets the expiry of a token, to now if the period is negative. The result is the new expiry.

    :raises KafkaError: the token is unknown or has expired, or the requester may not expire it
    """
    token = found(command.hmac, image, around)
    if not may_renew(token, command.requester):
        raise DelegationTokenOwnerMismatch
    if command.period_ms < 0:
        return Decision([RemoveDelegationTokenRecord(token_id=token.token_id)], around.time_ms)
    if is_expired(token, around.time_ms):
        raise DelegationTokenExpired
    return until(token, around.time_ms + command.period_ms)


def found(secret: bytes, image: MetadataImage, around: Surroundings) -> DelegationTokenRecord:
    """Returns the token with that HMAC.

    :raises DelegationTokenNotFound: there is none
    """
    token = token_of(image.tokens.values(), secret, secret_key_of(image, around))
    if token is None:
        raise DelegationTokenNotFound
    return token


def until(token: DelegationTokenRecord, time_ms: int) -> Decision:
    """Sets the expiry to that time, or to the token's maximum if that is earlier."""
    changed = copy.copy(token)
    changed.expiration_timestamp = min(token.max_timestamp, time_ms)
    return Decision([changed], changed.expiration_timestamp)


def remove_expired(command: RemoveExpiredTokens, image: MetadataImage, around: Surroundings) -> Decision:
    """Removes expired tokens. The result is whether there may be more."""
    expired = [token for token in image.tokens.values() if is_expired(token, around.time_ms)][:MAX_REMOVALS]
    for token in expired:
        logger.info("Delegation token expired for token: %s for owner: %s", token.token_id, token.owner)
    records = [RemoveDelegationTokenRecord(token_id=token.token_id) for token in expired]
    return Decision(records, len(records) == MAX_REMOVALS)
