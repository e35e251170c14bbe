"""Tokens for kafka-python's OAUTHBEARER, from the properties of Java's clients.

Knows nothing of how a token is fetched.
"""

import time
from collections.abc import Mapping

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from barnabas.security.clients.stores import ssl_context
from barnabas.security.login.login import LoginFailed
from barnabas.security.login.oauth_tokens import Clock, TokenSource, token_source


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Provides the token for each connection."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    def token(self) -> str:
        try:
            return self._source.token()
        except LoginFailed as failure:
            raise SaslAuthenticationFailedError(str(failure)) from None

    def extensions(self) -> dict[str, str]:
        return self._source.extensions


def token_provider(
    properties: Mapping[str, str], options: Mapping[str, str], clock: Clock = time.time
) -> TokenProvider:
    """Returns the provider for a client's properties and the options of its login module."""
    return TokenProvider(token_source(properties.get, options, lambda: ssl_context(properties), clock))
