"""The mechanism OAUTHBEARER: the client authenticates by a token of an OAuth provider.

Knows nothing of how a token is validated. Follows RFC 7628; the grammar, the rules and the texts are those of Apache
Kafka's ``OAuthBearerSaslServer`` and ``OAuthBearerClientInitialResponse`` (KIP-255, KIP-342).
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from barnabas.errors import CloseConnection
from barnabas.security.principals import USER, Principal
from barnabas.security.sasl.mechanism import Authenticated, AuthenticationRefused

NAME: Final = "OAUTHBEARER"

_AUTHORIZATION_ID = r"(?:[\x01-\x2B\x2D-\x3C\x3E-\x7F]|=2C|=3D)+"
_FIRST_MESSAGE = re.compile(
    f"n,(?:a=(?P<authorization_id>{_AUTHORIZATION_ID}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER = re.compile(r"(?P<scheme>[A-Za-z0-9_]+)[ ]+(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_AFTER_ERROR = b"\x01"


class InvalidToken(Exception):
    """The token is refused. The text is for the broker's log only."""


class InsufficientScope(InvalidToken):
    """The token lacks a scope."""

    def __init__(self, scope: str) -> None:
        super().__init__("a required scope is missing")
        self.scope = scope  #: the required scopes


class ValidToken(NamedTuple):
    """The fields of a token that the broker uses."""

    subject: str
    expires_at_ms: int


class Validator(Protocol):
    """The rules by which tokens are valid."""

    def validate(self, token: str, now_ms: int) -> ValidToken:
        """Returns the fields of a valid token.

        :raises InvalidToken: the token is not valid
        """


class OAuthBearer:
    """The mechanism with the rules of one listener."""

    name = NAME

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def begin(self, time_ms: Callable[[], int]) -> "OAuthBearerExchange":
        return OAuthBearerExchange(self._validator, time_ms)


class OAuthBearerExchange:
    """The message of a client, and one more after an error (RFC 7628, section 3.2.3)."""

    __slots__ = ("_error", "_time_ms", "_validator")

    def __init__(self, validator: Validator, time_ms: Callable[[], int]) -> None:
        self._validator = validator
        self._time_ms = time_ms
        self._error = ""  #: the error that was sent to the client

    def evaluate(self, token: bytes) -> tuple[bytes, Authenticated | None]:
        """Takes the client's message. The response to an invalid token is an error text, and the exchange fails with
        the client's next message.

        :raises AuthenticationRefused: the token was invalid, the message is malformed, or it names another user
        :raises CloseConnection: the scheme is not Bearer, as in Apache Kafka
        """
        if self._error and token == _AFTER_ERROR:
            raise AuthenticationRefused(self._error)
        self._error = ""
        authorization_id, text = parsed(token)
        try:
            found = self._validator.validate(text, self._time_ms())
        except InsufficientScope as refusal:
            self._error = f'{{"status":"insufficient_scope", "scope":"{refusal.scope}"}}'
        except InvalidToken:
            self._error = '{"status":"invalid_token"}'
        else:
            return b"", authenticated(found, authorization_id)
        return self._error.encode(), None


def authenticated(token: ValidToken, authorization_id: str) -> Authenticated:
    """Returns the identity of the client.

    :raises AuthenticationRefused: the client requests another identity than that of the token
    """
    if authorization_id not in ("", token.subject):
        raise AuthenticationRefused(
            f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different from "
            f"the token's principal name ({token.subject})"
        )
    return Authenticated(Principal(USER, token.subject), token.expires_at_ms)


def parsed(message: bytes) -> tuple[str, str]:
    """Returns the authorization id and the token of a client's message. Extensions are accepted and ignored.

    :raises AuthenticationRefused: the message is malformed
    :raises CloseConnection: the scheme is not Bearer; Apache Kafka fails while it formats its error, and closes the
        connection
    """
    found = _FIRST_MESSAGE.fullmatch(message.decode("utf-8", "replace"))
    if found is None:
        raise AuthenticationRefused
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
    bearer = _BEARER.fullmatch(pairs.get("auth", ""))
    if bearer is None:
        raise AuthenticationRefused
    if bearer["scheme"].lower() != "bearer":
        raise CloseConnection("the scheme of an OAUTHBEARER message is not Bearer")
    return found["authorization_id"] or "", bearer["token"]
