"""The kinds of group beside the classic one: which there are, which records are theirs, and where each is made.

Knows nothing of how any of them works. A kind is imported when it is first needed: a broker without such groups starts
without it.
"""

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from barnabas.groups.environment import Environment
from barnabas.groups.ledger import Applier
from barnabas.wire.coordinator_records import CoordinatorKey


class Kind(Protocol):
    """All groups of one kind."""

    @property
    def appliers(self) -> Mapping[type[CoordinatorKey], Applier]:
        """What applies the records that are theirs."""

    def start(self) -> None:
        """All that the log holds has been applied: deadlines begin."""

    def topics_changed(self, names: Collection[str]) -> None:
        """Topics of these names were made, deleted, or have more partitions."""


class Place(NamedTuple):
    """Where a kind is to be found."""

    module: str  #: of this package
    name: str
    record_types: Collection[int]  #: of the keys in ``__consumer_offsets``


PLACES = {
    "consumer": Place("consumer_groups", "ConsumerGroups", (3, 4, 5, 6, 7, 8, 16)),
    "share": Place("share.share_groups", "ShareGroups", range(10, 16)),
    "streams": Place("streams.streams_groups", "StreamsGroups", range(17, 24)),
}


class Kinds:
    """Those that were needed so far."""

    def __init__(self, environment: Callable[[], Environment]) -> None:
        self._environment = environment
        self._made: dict[str, Any] = {}
        self._has_started = False

    def of(self, type_: str) -> Any:
        """The kind with that name, made where it was not."""
        kind = self._made.get(type_)
        if kind is None:
            place = PLACES[type_]
            module = importlib.import_module(f"barnabas.groups.{place.module}")
            kind = self._made[type_] = getattr(module, place.name)(self._environment())
            if self._has_started:
                kind.start()
        return kind

    def applier_of(self, key: type[CoordinatorKey]) -> Applier | None:
        """What applies records with such a key; None where no kind does."""
        for type_, place in PLACES.items():
            if key.record_type in place.record_types:
                applier: Applier | None = self.of(type_).appliers.get(key)
                return applier
        return None

    def start(self) -> None:
        self._has_started = True
        for kind in self._made.values():
            kind.start()

    def topics_changed(self, names: Collection[str]) -> None:
        for kind in self._made.values():
            kind.topics_changed(names)
