"""Shrinks a failing run: fewer faults and a shorter time, with the same failure.

Knows nothing of the failure. Each attempt is a run.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.simulation.run import Outcome, run

SHORTEST_S = 1.0

Run = Callable[..., Outcome]


class Shrunk(NamedTuple):
    """The smallest failing run that was found."""

    outcome: Outcome
    left_out: frozenset[int]
    until: float  #: seconds after which the faults and the load end
    tries: int


def shrink(seed: int, failed: Outcome, *, seconds: float, again: Run = run, **settings: Any) -> Shrunk:
    """Returns a smaller run of a seed that fails. Nothing is removed if the failure does not happen again.

    First all faults after the failure are removed, then halves, quarters and so on of the others, then the end of the
    time.
    """
    tries = 0

    def fails(left_out: frozenset[int], until: float) -> Outcome | None:
        nonlocal tries
        tries += 1
        outcome = again(seed, seconds=seconds, left_out=left_out, until=until, **settings)
        return outcome if outcome.problems else None

    best, until, left_out = failed, seconds, frozenset[int]()
    late = frozenset(number for number, fault in failed.faults.items() if fault.at > failed.virtual_s)
    if late and (outcome := fails(late, until)) is not None:
        best, left_out = outcome, late
    size = len(best.faults)
    while size:
        for batch in batches(sorted(set(failed.faults) - left_out), size):
            outcome = fails(left_out | batch, until)
            if outcome is not None:
                best, left_out = outcome, left_out | batch
        size //= 2
    while until / 2 >= SHORTEST_S and (outcome := fails(left_out, until / 2)) is not None:
        best, until = outcome, until / 2
    return Shrunk(best, left_out, until, tries)


def batches(numbers: list[int], size: int) -> list[frozenset[int]]:
    """Splits numbers into groups of that size."""
    return [frozenset(numbers[at : at + size]) for at in range(0, len(numbers), size)]
