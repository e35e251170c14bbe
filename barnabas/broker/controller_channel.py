"""The channel to the active controller: finds it, and resends a request that was lost or that reached another node.

Knows nothing of what the requests mean. Apache Kafka's ``NodeToControllerChannelManager``.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.errors import KafkaError, NetworkException, NotController, RequestTimedOut
from barnabas.peers.peers import ApiVersions, Done, Peers
from barnabas.wire.error_codes import error_codes
from barnabas.wire.message import Request

logger = logging.getLogger(__name__)

RETRY_S = 0.05
"""How long to wait before a request is resent, or the active controller is looked up again."""

LANE = "controller"


class _Call:
    """A request, its deadline for retries, and the callback for the response."""

    __slots__ = ("deadline", "done", "lane", "request")

    def __init__(self, request: Request, deadline: float | None, done: Done, lane: str) -> None:
        self.request = request
        self.lane = lane
        self.deadline = deadline  #: of the monotonic clock
        self.done = done


class ControllerChannel:
    """The channel of one node.

    :param peers: reaches the controllers by their ids
    :param leadership: returns the active controller that this node knows
    :param is_sole: returns whether this node is the only voter
    :param timeout_ms: returns how long to wait for a response
    """

    def __init__(
        self,
        node_id: int,
        peers: Peers,
        leadership: Callable[[], Leadership],
        *,
        is_sole: Callable[[], bool],
        clock: Clock,
        scheduler: Scheduler,
        timeout_ms: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._peers = peers
        self._leadership = leadership
        self._is_sole = is_sole
        self._clock = clock
        self._scheduler = scheduler
        self._timeout_ms = timeout_ms
        self._waiting: dict[_Call, Timer] = {}
        self._is_closed = False

    @property
    def is_local(self) -> bool:
        """Whether this node is the active controller, of a quorum without other voters."""
        return self._is_sole()

    def send(self, request: Request, done: Done, *, timeout_ms: int | None = None, lane: str = LANE) -> None:
        """Sends the request to the active controller. ``done`` gets the response, at once or later.

        The responses to the requests of one lane come one after the other.

        After NOT_CONTROLLER or a lost connection the request is resent, maybe to another node, until ``timeout_ms``
        have passed; then ``done`` gets REQUEST_TIMED_OUT. Without ``timeout_ms`` it is resent without limit.
        """
        deadline = None if timeout_ms is None else self._clock.monotonic() + timeout_ms / 1000
        self._try(_Call(request, deadline, done, lane))

    @property
    def versions(self) -> ApiVersions | None:
        """The API versions of the active controller; None if they are unknown, or if this node is the active
        controller.
        """
        leader_id = self._leadership().leader_id
        return None if leader_id in (NO_NODE, self._node_id) else self._peers.versions_of(leader_id)

    def close(self) -> None:
        """Stops sending. Pending requests end with NETWORK_EXCEPTION."""
        self._is_closed = True
        waiting, self._waiting = self._waiting, {}
        for call, timer in waiting.items():
            timer.cancel()
            call.done(None, NetworkException())

    def _try(self, call: _Call) -> None:
        self._waiting.pop(call, None)
        leader_id = self._leadership().leader_id
        if leader_id == NO_NODE:
            self._retry(call)
            return
        left_ms = self._timeout_ms()
        if call.deadline is not None:
            left_ms = min(left_ms, round((call.deadline - self._clock.monotonic()) * 1000))
        if left_ms <= 0:
            call.done(None, RequestTimedOut())
            return
        self._peers.send(leader_id, call.request, partial(self._answered, call), lane=call.lane, timeout_ms=left_ms)

    def _answered(self, call: _Call, response: Any, error: KafkaError | None) -> None:
        if response is not None and NotController.code in error_codes(response):
            logger.debug("The active controller changed during %s", type(call.request).__name__)
            self._retry(call)
        elif isinstance(error, NetworkException | RequestTimedOut):
            logger.debug("%s has no response from the controller: %r", type(call.request).__name__, error)
            self._retry(call)
        else:
            call.done(response, error)

    def _retry(self, call: _Call) -> None:
        if self._is_closed:
            call.done(None, NetworkException())
        elif call.deadline is not None and self._clock.monotonic() + RETRY_S > call.deadline:
            call.done(None, RequestTimedOut("The active controller has not answered in time"))
        else:
            self._waiting[call] = self._scheduler.call_later(RETRY_S, self._try, call)
