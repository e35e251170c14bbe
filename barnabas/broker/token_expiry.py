"""Removes expired delegation tokens, every ``delegation.token.expiry.check.interval.ms``.

Knows nothing of requests. Apache Kafka's ``QuorumController.registerExpireDelegationTokens``.
"""

from typing import Any

from barnabas.clock import Scheduler, Timer
from barnabas.cluster.controller.commands.tokens import RemoveExpiredTokens
from barnabas.cluster.controller.controller import Controller
from barnabas.errors import KafkaError


class TokenExpiry:
    """The timer of one node. On a node that is not the active controller the command is refused, and tried again next
    time.
    """

    def __init__(self, controller: Controller, scheduler: Scheduler, interval_ms: int) -> None:
        self._controller = controller
        self._scheduler = scheduler
        self._interval_s = interval_ms / 1000
        self._timer: Timer | None = None

    def start(self) -> None:
        self._wait(self._interval_s)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, seconds: float) -> None:
        self._timer = self._scheduler.call_later(seconds, self._remove)

    def _remove(self) -> None:
        self._controller.submit(RemoveExpiredTokens(), self._removed)

    def _removed(self, may_be_more: Any, error: KafkaError | None) -> None:
        if self._timer is not None:
            self._wait(0 if may_be_more else self._interval_s)
