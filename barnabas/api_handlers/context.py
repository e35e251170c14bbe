"""What a handler knows beside the request: the broker, and who is asking.

Knows nothing of sockets: the connection fills it in. There is one for each connection, and it speaks of the request
at hand; a handler that answers later takes what it needs before it returns.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker import Broker


class Context:
    """The surroundings of one request."""

    __slots__ = ("api_version", "broker", "client_host", "client_id", "correlation_id", "listener")

    def __init__(self, broker: "Broker", *, listener: str, client_host: str) -> None:
        # Per connection
        self.broker = broker
        self.listener = listener  #: name of the listener that was asked, as in ``listeners``
        self.client_host = client_host  #: the client's address, "127.0.0.1"
        # Per request
        self.client_id: str | None = None
        self.api_version = 0
        self.correlation_id = 0
