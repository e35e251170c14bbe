"""The types of groups beside the classic one: their modules and their record types.

Knows nothing of how a type works. Its module is imported when it is first needed, to keep the start of the broker
short.
"""

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from barnabas.groups.environment import Environment
from barnabas.groups.ledger import Applier
from barnabas.wire.coordinator_records import CoordinatorKey


class Kind(Protocol):
    """All groups of one type."""

    @property
    def appliers(self) -> Mapping[type[CoordinatorKey], Applier]:
        """The appliers of its records."""

    def start(self) -> None:
        """Starts the deadlines of members, once the log is loaded."""

    def topics_changed(self, names: Collection[str]) -> None:
        """Notes that these topics were created or deleted, or have more partitions."""


class KindModule(NamedTuple):
    """The module and class of a type."""

    module: str  #: The module, relative to this package.
    name: str
    record_types: Collection[int]  #: The types of its keys in ``__consumer_offsets``.


KIND_MODULES = {
    "consumer": KindModule("consumer_groups", "ConsumerGroups", (3, 4, 5, 6, 7, 8, 16)),
    "share": KindModule("share.share_groups", "ShareGroups", range(10, 16)),
    "streams": KindModule("streams.streams_groups", "StreamsGroups", range(17, 24)),
}


class Kinds:
    """The types that have been needed so far."""

    def __init__(self, environment: Callable[[], Environment]) -> None:
        self._environment = environment
        self._made: dict[str, Any] = {}
        self._has_started = False

    def of(self, type_: str) -> Any:
        """Returns the type with that name, and imports it if necessary."""
        kind = self._made.get(type_)
        if kind is None:
            kind_module = KIND_MODULES[type_]
            module = importlib.import_module(f"barnabas.groups.{kind_module.module}")
            kind = self._made[type_] = getattr(module, kind_module.name)(self._environment())
            if self._has_started:
                kind.start()
        return kind

    def applier_of(self, key: type[CoordinatorKey]) -> Applier | None:
        """Returns the applier for records with that key; None if no type has one."""
        for type_, kind_module in KIND_MODULES.items():
            if key.record_type in kind_module.record_types:
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
