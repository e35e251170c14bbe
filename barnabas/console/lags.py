"""The lags of groups over time, and their chart.

Knows nothing of groups except their names. A lag is recorded only when a page of its group is open.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

MOST_GROUPS: Final = 100
MOST_POINTS: Final = 300
WIDTH: Final = 600
HEIGHT: Final = 120


class Point(NamedTuple):
    """A lag at a time."""

    time_ms: int
    lag: int


class Lags:
    """The latest lags of the groups that were shown last."""

    def __init__(self) -> None:
        self._by_group: OrderedDict[str, list[Point]] = OrderedDict()

    def note(self, group: str, time_ms: int, lag: int) -> list[Point]:
        """Records a lag, and returns all recorded lags of the group."""
        points = [*self._by_group.pop(group, ()), Point(time_ms, lag)][-MOST_POINTS:]
        self._by_group[group] = points
        while len(self._by_group) > MOST_GROUPS:
            self._by_group.popitem(last=False)
        return points


class Chart(NamedTuple):
    """A line in SVG."""

    points: str
    most: int
    seconds: int


def chart(points: list[Point]) -> Chart:
    """Returns the line through the points, from left to right, and from zero to the largest lag."""
    first, last = points[0].time_ms, points[-1].time_ms
    most = max(max(each.lag for each in points), 1)
    width_ms = max(last - first, 1)
    line = " ".join(
        f"{(each.time_ms - first) * WIDTH / width_ms:.1f},{HEIGHT - each.lag * (HEIGHT - 4) / most - 2:.1f}"
        for each in (points if len(points) > 1 else [*points, points[0]._replace(time_ms=first + 1)])
    )
    return Chart(line, most, (last - first) // 1000)
