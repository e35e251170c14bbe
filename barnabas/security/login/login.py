"""The terms of a login: tokens of the client, to each of which the server has an answer.

Knows nothing of any mechanism.
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol

Tokens = Generator[bytes, bytes, None]
"""One login: yields the client's tokens, and is sent the server's answer to each; it ends after the last one.

:raises LoginFailed: it cannot prove who it is, or the server has not proved that it knows the password
"""

Login = Callable[[str], Tokens]
"""Begins a login at the server of that host. The tokens may need files, or other servers: a thread takes them."""


class LoginFailed(Exception):
    """The login cannot be completed. The text shows no secret."""


class Configs(Protocol):
    """The configs of a listener (:class:`barnabas.config.listener_configs.ListenerConfigs`)."""

    listener_name: str

    def __getitem__(self, name: str) -> Any: ...

    def of_mechanism(self, mechanism: str, name: str) -> Any: ...
