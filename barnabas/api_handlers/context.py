"""What a handler knows beside the request: the broker, and who is asking.

Knows nothing of sockets: the connection fills it in. There is one for each connection, and it speaks of the request
at hand; a handler that answers later takes what it needs before it returns.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.api_handlers.registry import Promise

if TYPE_CHECKING:
    from barnabas.broker import Broker


class Context:
    """The surroundings of one request."""

    __slots__ = (
        "api_version",
        "apis",
        "broker",
        "client_host",
        "client_id",
        "connection",
        "correlation_id",
        "listener",
        "on_close",
        "release",
    )

    def __init__(
        self,
        broker: "Broker",
        *,
        listener: str,
        client_host: str,
        promise: Promise = Promise(),  # noqa: B008
        connection: int = 0,
    ) -> None:
        # Per connection
        self.broker = broker
        self.apis, self.release = promise
        self.listener = listener  #: name of the listener that was asked, as in ``listeners``
        self.client_host = client_host  #: the client's address, "127.0.0.1"
        self.connection = connection  #: its number, of those that were opened; 0 where there is none
        self.on_close: Callable[[], object] | None = None  #: called when the connection has ended
        # Per request
        self.client_id: str | None = None
        self.api_version = 0
        self.correlation_id = 0
