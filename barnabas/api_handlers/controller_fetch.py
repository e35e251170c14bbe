"""Fetch (API key 1) on a controller's listener: the metadata log, for brokers and controllers that copy it (KIP-595).

Knows nothing of how the log is read. Apache Kafka's ``ControllerApis.handleFetch`` and ``KafkaRaftClient``.
"""

from typing import TYPE_CHECKING

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.clock import Timer
from barnabas.cluster.quorum.leader_log import LeaderLog, Sender
from barnabas.errors import KafkaError, NotController
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from barnabas.broker import Node


@api(FetchRequest)
def controller_fetch(request: FetchRequest, context: Context) -> FetchResponse | Later[FetchResponse]:
    """Reads the metadata log. The response may wait for more records, or for a higher high watermark."""
    log, sender = leader_log(context.broker), sender_of(context)
    response, tells = log.fetch(request, sender, context.time_ms)
    return response if tells or request.max_wait_ms == 0 else Waiting(request, response, sender, log, context).later


def leader_log(node: "Node") -> LeaderLog:
    """Returns the metadata log that the node serves to others. :raises NotController: the node is not a controller"""
    found = node.quorum.leader_log
    if found is None:
        raise NotController
    return found


def sender_of(context: Context) -> Sender:
    return Sender(context.api_version, context.session.listener, context.broker.cluster_id)


class Waiting:
    """A fetch that waits for new records."""

    def __init__(
        self, request: FetchRequest, response: FetchResponse, sender: Sender, log: LeaderLog, context: Context
    ) -> None:
        self.later: Later[FetchResponse] = Later()
        self.later.on_cancel = self.stop
        self._request = request
        self._response = response
        self._sender = sender
        self._log = log
        self._clock = context.broker.clock
        self._scheduler = context.broker.scheduler
        self._timer: Timer = self._scheduler.call_later(request.max_wait_ms / 1000, self.expire)
        log.wait(self.advanced)

    def advanced(self) -> None:
        """Responds in the next turn of the loop, with everything that is committed in this one."""
        self._timer.cancel()
        self._timer = self._scheduler.call_later(0, self.look)

    def look(self) -> None:
        try:
            response, _ = self._log.fetch(self._request, self._sender, self._clock.time_ms())
        except KafkaError as error:  # the disk has failed since
            response = FetchResponse(error_code=error.code, responses=[])
        self.later.resolve(response)

    def expire(self) -> None:
        """Responds without records."""
        self.stop()
        self.later.resolve(self._response)

    def stop(self) -> None:
        self._timer.cancel()
        self._log.stop_waiting(self.advanced)
