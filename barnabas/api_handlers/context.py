"""The context of a request: its header, the session, the broker, and the time.

Knows nothing of sockets: dispatch fills it in. A connection serves one request at a time, and fills in the same context
for each. It is valid until the response to that request, even a later one.
"""

from typing import TYPE_CHECKING, cast

from barnabas.api_handlers.session import Session

if TYPE_CHECKING:
    from barnabas.broker import Broker, Node
    from barnabas.security.quotas.client_quotas import Meter


class Context:
    """The context of one request."""

    __slots__ = ("api_version", "broker", "client_id", "correlation_id", "has_errors", "meter", "session", "time_ms")

    def __init__(
        self,
        node: "Node",
        session: Session,
        *,
        api_version: int = 0,
        client_id: str | None = None,
        correlation_id: int = 0,
        time_ms: int = 0,
    ) -> None:
        self.broker = cast("Broker", node)  #: on a controller's listener it may be a plain Node, without partitions
        self.session = session
        self.api_version = api_version
        self.client_id = client_id
        self.correlation_id = correlation_id
        self.time_ms = time_ms  #: when the broker began to serve the request, in milliseconds since 1970
        #: Whether a produce request has failed for a partition, or still may, since somebody set this to False. Metrics
        #: look into no other response to Produce, since that would cost 2 % of a small request.
        self.has_errors = False
        self.meter: Meter | None = None  #: charges the request to its client's quotas; None while no quota is set

    @property
    def is_elsewhere(self) -> bool:
        """Whether the active controller has to decide: it is another node, and the request was sent to a broker's
        listener.
        """
        quorum = self.broker.quorum
        return not (self.session.promise.is_controllers or quorum.is_leader or quorum.is_sole_voter)
