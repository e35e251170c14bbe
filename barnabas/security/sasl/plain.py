"""The mechanism PLAIN: a user's name and password in one message.

Knows nothing of where the users come from. Follows RFC 4616; rules and texts are those of Apache Kafka's
``PlainSaslServer``.
"""

import hmac
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.security.principals import USER, Principal
from barnabas.security.sasl.mechanism import Authenticated, AuthenticationRefused

NAME: Final = "PLAIN"
USER_OPTION: Final = "user_"
"""The prefix of the login module's options for users: the rest of the name is the user, the value is the password."""

_FIELDS = 3


class Plain:
    """PLAIN with a fixed set of users."""

    name = NAME

    def __init__(self, options: Mapping[str, str]) -> None:
        """Takes the options of the login module."""
        self._passwords = {
            name.removeprefix(USER_OPTION): password.encode()
            for name, password in options.items()
            if name.startswith(USER_OPTION)
        }

    def begin(self, time_ms: Callable[[], int]) -> "Plain":
        """Returns itself: an exchange has a single message, and no state."""
        return self

    def evaluate(self, token: bytes) -> tuple[bytes, Authenticated | None]:
        """Takes the message: ``[authzid] NUL name NUL password``.

        :raises AuthenticationRefused: the password is wrong, or the message is malformed
        """
        fields = token.decode("utf-8", "replace").split("\0", _FIELDS)
        if len(fields) != _FIELDS:
            raise AuthenticationRefused(f"Invalid SASL/PLAIN response: expected {_FIELDS} tokens, got {len(fields)}")
        authorization_id, name, password = fields
        if not name:
            raise AuthenticationRefused("Authentication failed: username not specified")
        if not password:
            raise AuthenticationRefused("Authentication failed: password not specified")
        # The password of an unknown user is compared, too, so that the time does not reveal which users exist.
        expected = self._passwords.get(name)
        is_equal = hmac.compare_digest(password.encode(), expected or b"")
        if expected is None or not is_equal:
            raise AuthenticationRefused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", name):
            raise AuthenticationRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return b"", Authenticated(Principal(USER, name))
