"""The interface of a SASL mechanism: an exchange of tokens that ends with a principal.

Knows nothing of any mechanism.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.security.principals import Principal


class Authenticated(NamedTuple):
    """The result of an exchange: the identity of the client."""

    principal: Principal
    expires_at_ms: int | None = None  #: when the credential expires, in milliseconds since 1970; None: never
    by_token: bool = False  #: whether the credential was a delegation token (KIP-48)


class AuthenticationRefused(Exception):
    """The client is refused.

    The text is sent to it, and must not say more than Apache Kafka's does. Without a text it gets the default one:
    "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN".
    """


class Exchange(Protocol):
    """One authentication of one client."""

    def evaluate(self, token: bytes) -> tuple[bytes, Authenticated | None]:
        """Takes a token of the client. Returns the server's token and, with the last one, the result.

        :raises AuthenticationRefused: the client is refused
        :raises CloseConnection: the connection is closed without a response
        """


class Mechanism(Protocol):
    """A mechanism as it is configured on one listener."""

    @property
    def name(self) -> str:
        """As in ``sasl.enabled.mechanisms``: PLAIN, SCRAM-SHA-256, ..."""

    def begin(self, time_ms: Callable[[], int]) -> Exchange:
        """Returns a new exchange.

        :param time_ms: returns the time in milliseconds since 1970; a token is validated at the time of its arrival
        """
