"""Calls a function for each of many items over several turns of the event loop, so that other work is not held up.

Knows nothing of the items.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from barnabas.clock import Clock, Scheduler

T = TypeVar("T")

TURN_ITEMS: Final = 64
TURN_S: Final = 0.001
"""A turn ends after that many items or that much time, whichever is first."""


def visit_in_turns(
    items: Iterable[T],
    visit: Callable[[T], object],
    clock: Clock,
    scheduler: Scheduler | None,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Calls ``visit`` for the first items now and for the others in later turns of the loop, then calls ``done``.

    What ``visit`` raises is raised. The other items are visited all the same, in later turns.

    :param items: must not change in between
    :param scheduler: without one all items are visited now
    """
    remaining = iter(items)

    def turn() -> None:
        until = clock.monotonic() + TURN_S
        for count, item in enumerate(remaining, 1):
            try:
                visit(item)
            except BaseException:
                if scheduler is not None:
                    scheduler.call_later(0, turn)
                raise
            if scheduler is not None and (count == TURN_ITEMS or clock.monotonic() > until):
                scheduler.call_later(0, turn)
                return
        done()

    turn()
