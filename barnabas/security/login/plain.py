"""The login by PLAIN: user and password in one message.

Knows nothing of where they come from. Follows RFC 4616, and ``PlainSaslClient`` of Java.
"""

from barnabas.security.login.login import Tokens


def plain(user: str, password: str) -> Tokens:
    """Logs in."""
    yield f"\0{user}\0{password}".encode()
