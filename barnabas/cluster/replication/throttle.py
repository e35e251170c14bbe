"""The limit on the rate at which throttled replicas are copied (KIP-73).

Knows nothing of fetches. Apache Kafka's ``ReplicationQuotaManager``: the throttled replicas are a config of the topic;
each broker has one limit as a leader, and one as a follower.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from barnabas.security.quotas.rates import LONGEST_MS, WINDOWS, Rate, Windows

ALL = "*"


class ReplicationThrottle:
    """The limit of one broker in one role.

    :param bytes_per_second: returns the limit; None for no limit
    """

    __slots__ = ("_bytes_per_second", "_rate")

    def __init__(self, bytes_per_second: Callable[[], int | None], windows: Windows = WINDOWS) -> None:
        self._bytes_per_second = bytes_per_second
        self._rate = Rate(windows)

    def record(self, size: int, now_ms: int) -> None:
        """Counts bytes of a throttled replica."""
        self._rate.record(size, now_ms)

    def pause_ms(self, now_ms: int) -> int:
        """Returns how long throttled replicas have to wait; 0 while the rate is within the limit."""
        limit = self._bytes_per_second()
        if limit is None:
            return 0
        return self._rate.throttle_ms(limit, now_ms) if limit else LONGEST_MS


@lru_cache(256)
def _partitions(replicas: tuple[str, ...], node_id: int) -> frozenset[int]:
    pairs = (each.partition(":") for each in replicas if each)
    return frozenset(int(index) for index, _, broker in pairs if int(broker) == node_id)


def is_throttled(replicas: Sequence[str], index: int, node_id: int) -> bool:
    """Returns whether a topic's config of throttled replicas includes the replica of a broker.

    >>> is_throttled(["0:1", "0:2", "1:3"], 0, 2), is_throttled(["0:1"], 1, 1), is_throttled(["*"], 7, 7)
    (True, False, True)
    """
    return bool(replicas) and (replicas[0] == ALL or index in _partitions(tuple(replicas), node_id))
