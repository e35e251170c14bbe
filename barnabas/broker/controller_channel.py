"""The way to the active controller: finds it, and sends a request again where it was lost or came to another node.

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
"""How long to wait before a controller is asked again, or looked for again."""

LANE = "controller"


class _Call:
    """A request, until when it may be sent again, and who waits for the answer."""

    __slots__ = ("deadline", "done", "lane", "request")

    def __init__(self, request: Request, deadline: float | None, done: Done, lane: str) -> None:
        self.request = request
        self.lane = lane
        self.deadline = deadline  #: by the monotonic clock
        self.done = done


class ControllerChannel:
    """The channel of one node.

    :param peers: reaches the controllers by their ids
    :param leadership: returns who is the active controller, as this node knows
    :param is_sole: returns whether this node is the whole quorum
    :param timeout_ms: returns how long an answer is waited for
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
        """Sends the request to the active controller. ``done`` gets its answer, at once or later.

        The answers to the requests of one lane come one after the other.

        NOT_CONTROLLER and lost connections are not answers: the request is sent again, maybe to another node, until
        ``timeout_ms`` have passed, or for ever without it. After them ``done`` gets REQUEST_TIMED_OUT.
        """
        deadline = None if timeout_ms is None else self._clock.monotonic() + timeout_ms / 1000
        self._try(_Call(request, deadline, done, lane))

    @property
    def versions(self) -> ApiVersions | None:
        """The versions of the active controller, as far as they are known; None as well if this node is it."""
        leader_id = self._leadership().leader_id
        return None if leader_id in (NO_NODE, self._node_id) else self._peers.versions_of(leader_id)

    def close(self) -> None:
        """Sends nothing any more. Those who wait for an answer get NETWORK_EXCEPTION."""
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
            logger.debug("The active controller has changed while it was sent %s", type(call.request).__name__)
            self._retry(call)
        elif isinstance(error, NetworkException | RequestTimedOut):
            logger.debug("%s has got no answer from the controller: %r", type(call.request).__name__, error)
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
