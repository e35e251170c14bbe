"""The controller's commands about delegation tokens (KIP-48).

Knows nothing of requests and decisions.
"""

from collections.abc import Sequence
from typing import NamedTuple


class CreateDelegationToken(NamedTuple):
    """Creates a token; principals are in Kafka's notation. The result has the token's record and its secret."""

    owner: str
    requester: str
    renewers: Sequence[str] = ()
    max_lifetime_ms: int = -1  #: 0 or less: the configured maximum


class RenewDelegationToken(NamedTuple):
    """Renews a token. The result is its expiry, in milliseconds since 1970."""

    hmac: bytes
    requester: str
    period_ms: int = -1  #: from now on; 0 or less: the configured default

    def __repr__(self) -> str:
        return f"RenewDelegationToken({self.requester})"  # the HMAC is a password


class ExpireDelegationToken(NamedTuple):
    """Sets the expiry of a token. The result is its expiry, in milliseconds since 1970."""

    hmac: bytes
    requester: str
    period_ms: int = -1  #: from now on; less than 0: immediately

    def __repr__(self) -> str:
        return f"ExpireDelegationToken({self.requester})"


class RemoveExpiredTokens(NamedTuple):
    """Removes expired delegation tokens. The result is whether there may be more of them."""
