"""Delegation tokens: who may use one, and the secret by which a client authenticates (KIP-48).

Knows nothing of where tokens are stored. Follows Apache Kafka's ``DelegationTokenControlManager``,
``DelegationTokenManager`` and ``TokenInformation``.
"""

import hmac
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from barnabas.security.principals import Principal

SECRET_KEY: Final = "delegation.token.secret.key"
MAX_LIFETIME: Final = "delegation.token.max.lifetime.ms"
EXPIRY_TIME: Final = "delegation.token.expiry.time.ms"
CHECK_INTERVAL: Final = "delegation.token.expiry.check.interval.ms"


class Token(Protocol):
    """A token. Times are in milliseconds since 1970, principals are in Kafka's notation."""

    @property
    def token_id(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def requester(self) -> str: ...
    @property
    def renewers(self) -> Sequence[str]: ...
    @property
    def issue_timestamp(self) -> int: ...
    @property
    def expiration_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...


T = TypeVar("T", bound=Token)


def principal_of(text: str) -> Principal:
    """Returns the principal that is written in Kafka's notation.

    >>> principal_of("User:CN=a:b").name
    'CN=a:b'
    """
    kind, _, name = text.partition(":")
    return Principal(kind, name)


def may_request(security_protocol: str, principal_is_anonymous: bool, by_token: bool) -> bool:
    """Returns whether a session may request tokens: it is authenticated, and not by a token."""
    if by_token or security_protocol == "PLAINTEXT":
        return False
    return security_protocol != "SSL" or not principal_is_anonymous


def may_renew(token: Token, principal: str) -> bool:
    """Returns whether the principal may renew and expire the token. Super users may not."""
    return principal == token.owner or principal in token.renewers


def may_see(token: Token, principal: str) -> bool:
    """Returns whether the principal may describe the token without an ACL."""
    return may_renew(token, principal) or principal == token.requester


def is_expired(token: Token, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def hmac_of(token_id: str, secret_key: str) -> bytes:
    """Returns the secret of a token, computed from its id and the secret key of the cluster."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def token_of(tokens: Iterable[T], secret: bytes, secret_key: str) -> T | None:
    """Returns the token with that secret."""
    for token in tokens:
        if hmac.compare_digest(hmac_of(token.token_id, secret_key), secret):
            return token
    return None
