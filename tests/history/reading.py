"""Checks of the records of readers, poll by poll: order, gaps, and records that were not visible yet.

Knows nothing of producers but the offsets of acknowledged records.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.history.anomaly import Anomaly
from tests.history.evidence import Evidence
from tests.history.records import DURING, OK, Operation, Poll


class Position(NamedTuple):
    """The last record of a key that a reader has read, and the operation."""

    offset: int
    value: int
    operation: Operation


def poll_order(evidence: Evidence) -> Iterator[Anomaly]:
    """Checks that a reader without a change of position reads each visible record once, in order."""
    everything = {
        False: {key: sorted(places) for key, places in evidence.places.items()},
        True: {key: [offset for offset, _ in order] for key, order in evidence.orders.items()},
    }
    positions: dict[str, dict[str, Position]] = defaultdict(dict)
    for operation, poll in evidence.history.polls():
        if poll.moved:
            positions[poll.reader].clear()
        if poll.moved == DURING:  # the order of these records is unknown
            continue
        yield from _follow(positions[poll.reader], operation, poll, everything[poll.committed])


def _follow(
    positions: dict[str, Position], operation: Operation, poll: Poll, visible: dict[str, list[int]]
) -> Iterator[Anomaly]:
    for key, offset, value in poll.records:
        last = positions.get(key)
        positions[key] = Position(offset, value, operation)
        if last is None:
            continue
        inside = "internal-" * (last.operation is operation)
        step = f"{poll.reader} went from {last.value} at {key}:{last.offset} to {value} at {offset}"
        if offset <= last.offset:
            yield Anomaly(f"{inside}nonmonotonic-poll", step, [last.operation, operation])
            continue
        offsets = visible.get(key, [])
        missed = offsets[bisect_right(offsets, last.offset) : bisect_left(offsets, offset)]
        if missed:
            text = f"{step} and was not given what stands at {missed[:5]}"
            yield Anomaly(f"{inside}poll-skip", text, [last.operation, operation])


def past_open_transactions(evidence: Evidence) -> Iterator[Anomaly]:
    """Checks that no read_committed reader reads past a transaction whose commit was not requested yet.

    Only committed transactions are used: those were certainly open until then, while others may have been aborted by
    the coordinator long before their producer knew.
    """
    opened: dict[str, list[tuple[int, float, Operation]]] = defaultdict(list)
    for operation in evidence.history.operations:
        if operation.is_transaction and operation.outcome == OK and operation.commit_at is not None:
            first: dict[str, int] = {}
            for send in operation.sends:
                if send.offset is not None and send.offset >= 0:
                    first[send.key] = min(send.offset, first.get(send.key, send.offset))
            for key, offset in first.items():
                opened[key].append((offset, operation.commit_at, operation))
    latest = {key: _latest_commits(sorted(each, key=lambda one: one[0])) for key, each in opened.items()}
    for sight in evidence.sights:
        if not sight.poll.committed or sight.key not in latest:
            continue
        offsets, commits, writers = latest[sight.key]
        at = bisect_left(offsets, sight.offset) - 1
        if at >= 0 and sight.poll.at < commits[at] and writers[at] is not evidence.writer(sight.value):
            text = (
                f"{sight.poll.reader} was given {sight.value} at {sight.key}:{sight.offset}, beyond a transaction "
                f"whose commit was requested {commits[at] - sight.poll.at:.6f} s later"
            )
            yield Anomaly("past-open-transaction", text, [writers[at], sight.operation])


def _latest_commits(
    opened: list[tuple[int, float, Operation]],
) -> tuple[list[int], list[float], list[Operation]]:
    """Returns, by offset, the latest commit among the transactions that began at or before it."""
    commits: list[float] = []
    writers: list[Operation] = []
    for _, when, operation in opened:
        if commits and commits[-1] >= when:
            when, operation = commits[-1], writers[-1]
        commits.append(when)
        writers.append(operation)
    return [offset for offset, _, _ in opened], commits, writers
