"""Fetch sessions (KIP-227): the broker remembers which partitions a client fetches, and a request lists only the
changes.

Knows nothing of logs. The fields of a requested partition are kept as received. The rules are those of Apache Kafka's
``FetchSession`` and ``FetchManager``: a session has an epoch that goes up by one with each request; a cache of fixed
size evicts the idle ones first.
"""

from collections.abc import Callable
from random import Random
from typing import Protocol

from barnabas.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from barnabas.integers import MAX_INT

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = MAX_INT

Key = tuple[str | bytes, int]
"""Topic (its id from version 13 of Fetch on, its name before) and partition."""


class RequestedPartition(Protocol):
    """A partition as the client last requested it."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int


class SessionPartition:
    """A partition of a session: the requested fields, and the state of the last response."""

    __slots__ = ("high_watermark", "log_start_offset", "requested", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, requested: RequestedPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.requested = requested
        # As of the last response; -1 before the first one, and after an error
        self.high_watermark = -1
        self.log_start_offset = -1


class FetchSession:
    """One client's session. Its partitions are in the order in which they are served."""

    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "uses_topic_ids")

    def __init__(
        self, session_id: int, partitions: dict[Key, SessionPartition], *, uses_topic_ids: bool, now_ms: int
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms
        self.epoch = 1

    def served(self, key: Key) -> None:
        """Moves a partition that returned records behind the others, so that none starves."""
        self.partitions[key] = self.partitions.pop(key)


class FetchSessions:
    """All sessions of a broker."""

    def __init__(self, slots: Callable[[], int], eviction_ms: Callable[[], int], random: Random) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._random = random
        self._sessions: dict[int, FetchSession] = {}  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def create(
        self, partitions: dict[Key, SessionPartition], *, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        """Creates a session; None when the cache is full and no session may be evicted."""
        if len(self._sessions) >= self._slots() and not self._evict(len(partitions), now_ms):
            return None
        session_id = 0
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.randrange(1, MAX_INT)
        session = FetchSession(session_id, partitions, uses_topic_ids=uses_topic_ids, now_ms=now_ms)
        self._sessions[session_id] = session
        return session

    def continue_(self, session_id: int, epoch: int, *, uses_topic_ids: bool, now_ms: int) -> FetchSession:
        """Returns the session of this request, and raises its epoch for the next one.

        :raises FetchSessionIdNotFound: it was evicted, or never existed
        :raises InvalidFetchSessionEpoch: a request was lost or duplicated
        :raises FetchSessionTopicIdError: it was created with names, and the request has ids, or vice versa
        """
        session = self._sessions.pop(session_id, None)
        if session is None:
            raise FetchSessionIdNotFound
        self._sessions[session_id] = session
        if session.epoch != epoch:
            raise InvalidFetchSessionEpoch
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError
        session.epoch = epoch + 1 if epoch < MAX_EPOCH else 1
        session.last_used_ms = now_ms
        return session

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def clear(self) -> None:
        self._sessions.clear()

    def _evict(self, size: int, now_ms: int) -> bool:
        """Evicts a session that has been idle for long, or else one that is old and smaller than the new one."""
        eviction_ms = self._eviction_ms()
        longest_idle = next(iter(self._sessions.values()), None)
        if longest_idle is None:
            return False
        if now_ms - longest_idle.last_used_ms > eviction_ms:
            self.remove(longest_idle.id)
            return True
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        if len(smallest.partitions) < size and now_ms - smallest.created_ms > eviction_ms:
            self.remove(smallest.id)
            return True
        return False
