"""The login by OAUTHBEARER: a token that an OAuth provider has issued to this node.

Knows nothing of how a token is fetched. Follows RFC 7628 and Apache Kafka's ``OAuthBearerSaslClient``.
"""

import ssl
from collections.abc import Mapping

from barnabas.config.settings import ListenerSettings
from barnabas.security.login.login import Login, Tokens
from barnabas.security.login.oauth_tokens import TokenSource, token_source


def of_listener(configs: ListenerSettings, options: Mapping[str, str]) -> Login:
    """Returns the login for the configs of a listener and the options of its login module."""

    def context() -> ssl.SSLContext:
        from barnabas.security.tls.client_side import client_context
        from barnabas.security.tls.reading import read_store

        return client_context(configs, read_store)

    source = token_source(configs.__getitem__, options, context)
    return lambda host: oauthbearer(source)


def oauthbearer(source: TokenSource) -> Tokens:
    """Logs in. After an error the server sends the reason only in response to one more message."""
    extensions = "".join(f"{name}={value}\x01" for name, value in source.extensions.items())
    if (yield f"n,,\x01auth=Bearer {source.token()}\x01{extensions}\x01".encode()):
        yield b"\x01"
