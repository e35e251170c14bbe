"""The shortest time between two assignments of a group.

Knows nothing of groups: the time of the last assignment is in a record, so it is that of another broker's clock, maybe.
"""


def may_assign(last_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Returns whether the interval since the last assignment is over.

    A clock that was turned back does not hold the group up, as it does in Apache Kafka until it has reached that time
    again (``GroupMetadataManager.canComputeNextTargetAssignment``).

    :param last_ms: when it was, 0 if there was none
    """
    return not last_ms or not last_ms <= now_ms < last_ms + interval_ms
