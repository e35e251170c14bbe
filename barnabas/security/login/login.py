"""The interface of a login: the client sends tokens, and the server responds to each.

Knows nothing of any mechanism.
"""

from collections.abc import Callable, Generator

Tokens = Generator[bytes, bytes, None]
"""One login: a generator that yields the client's tokens, and is sent the server's response to each. It ends after the
last one.

:raises LoginFailed: the client cannot authenticate, or the server has not proved that it knows the password
"""

Login = Callable[[str], Tokens]
"""Begins a login at the server of that host. Tokens are taken in a thread, since they may need files or other servers.
"""


class LoginFailed(Exception):
    """The login cannot be completed. The text contains no secret."""
