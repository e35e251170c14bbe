"""A client's session: the state of one connection that lasts from request to request.

Knows nothing of sockets, nor of the current request, which is part of the context
(:mod:`barnabas.api_handlers.context`).
"""

from collections.abc import Callable

from barnabas.api_handlers.registry import Promise
from barnabas.security.principals import ANONYMOUS, Principal

OnClose = Callable[[int], object]
"""Called with the number of the session that has ended."""


class Session:
    """One connection of a client.

    >>> session = Session(listener="PLAINTEXT", client_host="127.0.0.1", number=7)
    >>> str(session.principal)
    'User:ANONYMOUS'
    >>> session.on_close(print)
    >>> session.close()
    7
    """

    __slots__ = (
        "_on_close", "by_token", "client_host", "client_port", "client_software_name", "client_software_version",
        "is_forwarded", "listener", "number", "principal", "promise", "sasl_mechanism", "security_protocol",
    )  # fmt: skip

    def __init__(
        self,
        *,
        listener: str,
        client_host: str,
        client_port: int = 0,
        security_protocol: str = "PLAINTEXT",
        principal: Principal = ANONYMOUS,
        promise: Promise = Promise(),  # noqa: B008
        number: int = 0,
        is_forwarded: bool = False,
    ) -> None:
        self.listener = listener  #: its name, as in ``listeners``
        self.security_protocol = security_protocol  #: of that listener: PLAINTEXT, SSL, ...
        self.client_host = client_host  #: the client's address, "127.0.0.1"
        self.client_port = client_port  #: 0 if it is not known
        self.principal = principal
        self.promise = promise  #: the APIs and versions that are advertised to the client
        self.number = number  #: connections are numbered from 1 on as they are opened; 0 stands for none
        self.is_forwarded = is_forwarded  #: whether the requests come from another broker's client, in envelopes
        self.sasl_mechanism = ""  #: the SASL mechanism; empty without SASL
        self.by_token = False  #: whether it has authenticated with a delegation token (KIP-48)
        self.client_software_name = ""  #: from the client's ApiVersions request (KIP-511); empty before
        self.client_software_version = ""
        self._on_close: tuple[OnClose, ...] = ()

    def on_close(self, callback: OnClose) -> None:
        """Calls ``callback`` once when the connection is closed, however often it is registered."""
        if callback not in self._on_close:
            self._on_close += (callback,)

    def close(self) -> None:
        """Ends the session, after either side has closed the connection."""
        callbacks, self._on_close = self._on_close, ()
        for callback in callbacks:
            callback(self.number)
