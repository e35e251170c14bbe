"""The broker's configs that bound the configs of groups, and its defaults for groups.

Knows nothing of groups, nor of sources of values. The rules and messages are those of Kafka's
``GroupCoordinatorConfig``.
"""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.config.settings import Settings
from barnabas.config.validators import InvalidValue

TIMES = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
OF_SHARES = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")

#: The configs with bounds, by kind of group: ``group.share.min.session.timeout.ms`` and ``group.share.max...`` bound
#: ``share.session.timeout.ms``.
BOUNDED = {"consumer": TIMES, "share": TIMES + OF_SHARES, "streams": TIMES}

STANDBYS = "streams.num.standby.replicas"
MOST_STANDBYS = "group.streams.max.standby.replicas"


class Bounds(NamedTuple):
    """The broker's configs that bound a config of groups."""

    least: str | None
    most: str


def _all_bounds() -> Iterator[tuple[str, Bounds]]:
    for kind, names in BOUNDED.items():
        for name in names:
            yield f"{kind}.{name}", Bounds(f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
    yield STANDBYS, Bounds(None, MOST_STANDBYS)


BOUNDS = dict(_all_bounds())
"""The bounds by the name of the group's config."""


def check_bounds(values: Settings) -> None:
    """Checks that the broker's own defaults are within its bounds.

    :raises InvalidValue: one is not, or a heartbeat interval is not below its session timeout
    """
    for name, (least, most) in BOUNDS.items():
        own = f"group.{name}"
        if least is not None:
            _check_at_least(values, most, least)
            _check_at_least(values, own, least)
        _check_at_most(values, own, most)
    _check_at_most(values, "group.share.max.size", "group.share.max.share.sessions")
    for kind in BOUNDED:
        interval, timeout = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if values[interval] >= values[timeout]:
            raise InvalidValue(interval, f"{interval} must be less than {timeout}")
    name = "group.share.assignors"
    if len(values[name]) != 1:
        raise InvalidValue(name, f"{name} must contain exactly one assignor, but found {len(values[name])}")


def _check_at_least(values: Settings, name: str, least: str) -> None:
    if values[name] < values[least]:
        raise InvalidValue(name, f"{name} must be greater than or equal to {least}")


def _check_at_most(values: Settings, name: str, most: str) -> None:
    if values[name] > values[most]:
        raise InvalidValue(name, f"{name} must be less than or equal to {most}")
