"""Bounds that the broker sets to what groups may be configured to, and that it keeps to itself.

Knows nothing of groups, nor of how values come about.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from barnabas.config.definition import ConfigError

TIMES = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
OF_SHARES = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")

#: What has bounds in groups of each kind: ``group.share.min.session.timeout.ms`` and ``group.share.max...`` are those
#: of ``share.session.timeout.ms``.
BOUNDED = {"consumer": TIMES, "share": TIMES + OF_SHARES, "streams": TIMES}

STANDBYS = "streams.num.standby.replicas"
MOST_STANDBYS = "group.streams.max.standby.replicas"


class Values(Protocol):
    """Parsed values by name."""

    def __getitem__(self, name: str) -> Any: ...


class Bounds(NamedTuple):
    """The broker's configs that bound one of a group."""

    least: str | None
    most: str


def _all_bounds() -> Iterator[tuple[str, Bounds]]:
    for kind, names in BOUNDED.items():
        for name in names:
            yield f"{kind}.{name}", Bounds(f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
    yield STANDBYS, Bounds(None, MOST_STANDBYS)


BOUNDS = dict(_all_bounds())
"""By the name of the group's config."""


def check_bounds(values: Values) -> None:
    """Whether the broker's own settings are within its bounds (Kafka's ``GroupCoordinatorConfig``).

    Raises:
        ConfigError: they are not, or members would be removed between two heartbeats.
    """
    for name, (least, most) in BOUNDS.items():
        own = f"group.{name}"
        if least is not None:
            _check_order(values, least, most)
            _check_order(values, least, own)
        _check_order(values, own, most)
    _check_order(values, "group.share.max.size", "group.share.max.share.sessions")
    for kind in BOUNDED:
        interval, timeout = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if values[interval] >= values[timeout]:
            raise ConfigError(interval, str(values[interval]), f"less than {timeout}, which is {values[timeout]}")
    if len(values["group.share.assignors"]) != 1:
        raise ConfigError("group.share.assignors", ",".join(values["group.share.assignors"]), "one assignor")


def _check_order(values: Values, lower: str, upper: str) -> None:
    if values[lower] > values[upper]:
        raise ConfigError(lower, str(values[lower]), f"at most {upper}, which is {values[upper]}")
