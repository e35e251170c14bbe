"""The producer ids that this broker assigns, from blocks that the controller allocates.

Knows nothing of transactions. Corresponds to Apache Kafka's ``RPCProducerIdManager``.
"""

import logging
from collections.abc import Callable

from barnabas.cluster.controller.controller import Done
from barnabas.errors import CoordinatorLoadInProgress, KafkaError

logger = logging.getLogger(__name__)

PREFETCH_AT = 0.9
"""The next block is requested when this fraction of the current one is used (``PID_PREFETCH_THRESHOLD``)."""

Block = tuple[int, int]
"""The first id, and the number of ids."""


class ProducerIds:
    """``allocate`` asks the controller for a block; its callback gets a :data:`Block` or an error."""

    def __init__(self, allocate: Callable[[Done], object]) -> None:
        self._allocate = allocate
        self._current = iter(range(0))
        self._left = 0
        self._prefetch_below = 0
        self._next: Block | None = None
        self._is_requested = False
        self._waiting: list[Callable[[KafkaError | None], object]] = []

    def next(self) -> int:
        """Returns an id that no other producer of the cluster has had.

        :raises CoordinatorLoadInProgress: the next block has been requested, and has not arrived yet
        """
        self._take_next_block()
        if self._left <= self._prefetch_below and self._next is None:
            self._request()
            self._take_next_block()
        if not self._left:
            raise CoordinatorLoadInProgress("The next block of producer ids has not arrived yet")
        self._left -= 1
        return next(self._current)

    def _take_next_block(self) -> None:
        if not self._left and self._next is not None:
            (first, count), self._next = self._next, None
            self._current, self._left = iter(range(first, first + count)), count
            self._prefetch_below = round(count * (1 - PREFETCH_AT))

    def forget(self) -> None:
        """Drops the ids that are left in its blocks: the next id comes from a new block."""
        self._current, self._left, self._next = iter(range(0)), 0, None

    def when_available(self, callback: Callable[[KafkaError | None], object]) -> None:
        """Calls back when :meth:`next` has an id, or with the error of the allocation."""
        if self._left or self._next is not None:
            callback(None)
        else:
            self._waiting.append(callback)
            self._request()

    def _request(self) -> None:
        if not self._is_requested:
            self._is_requested = True
            self._allocate(self._answered)

    def _answered(self, block: Block | None, error: KafkaError | None) -> None:
        self._is_requested = False
        if error is None:
            self._next = block
        else:
            logger.warning("Cannot get a block of producer ids: %s", error)
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(error)
