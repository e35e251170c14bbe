"""Peers whose requests and responses are delayed, reordered or lost.

Knows nothing of the requests' contents. Delays are random, so a later request may arrive earlier. The scheduler and the
random numbers are passed in: the same seed gives the same run.
"""

from functools import partial
from random import Random
from typing import Any

from barnabas.clock import Scheduler
from barnabas.errors import KafkaError, NetworkException, RequestTimedOut
from barnabas.peers.peers import ApiVersions, Done, Peers
from barnabas.wire.message import Request


class UnreliablePeers:
    """Wraps other peers, and delays or loses their requests and responses.

    :param delay_s: the longest delay of a request, and of a response
    :param loss: the probability that a request or a response is lost; that is noticed at once (NETWORK_EXCEPTION: the
        connection broke), or after ``timeout_s`` (REQUEST_TIMED_OUT)
    """

    def __init__(
        self,
        peers: Peers,
        scheduler: Scheduler,
        random: Random,
        *,
        delay_s: float = 0.05,
        loss: float = 0.0,
        timeout_s: float = 30.0,
    ) -> None:
        self._peers = peers
        self._scheduler = scheduler
        self._random = random
        self.delay_s = delay_s
        self.loss = loss
        self.timeout_s = timeout_s
        self.unreachable: set[int] = set()  #: nodes that neither receive requests nor respond
        self.sent: list[tuple[int, Request]] = []  #: all requests so far, with the node that each was for
        self.lost = 0  #: how many requests and responses have been lost

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        self.sent.append((node_id, request))
        if self._is_lost(node_id):
            self._fail(done)
        else:
            self._later(partial(self._arrived, node_id, request, done, lane, timeout_ms))

    def versions_of(self, node_id: int) -> ApiVersions | None:
        return self._peers.versions_of(node_id)

    def _arrived(self, node_id: int, request: Request, done: Done, lane: str, timeout_ms: int | None) -> None:
        if node_id in self.unreachable:
            self._fail(done)
        else:
            answered = partial(self._answered, node_id, done)
            self._peers.send(node_id, request, answered, lane=lane, timeout_ms=timeout_ms)

    def _answered(self, node_id: int, done: Done, response: Any, error: KafkaError | None) -> None:
        if self._is_lost(node_id):
            self._fail(done)
        else:
            self._later(partial(done, response, error))

    def _is_lost(self, node_id: int) -> bool:
        return node_id in self.unreachable or self._random.random() < self.loss

    def _later(self, call: Any) -> None:
        self._scheduler.call_later(self._random.uniform(0, self.delay_s), call)

    def _fail(self, done: Done) -> None:
        self.lost += 1
        if self._random.random() < 0.5:
            self._later(partial(done, None, NetworkException()))
        else:
            self._scheduler.call_later(self.timeout_s, done, None, RequestTimedOut())
