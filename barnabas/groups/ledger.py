"""Changes groups by their records: appends them, then applies them.

Knows nothing of what records mean: each type of group has appliers for its own. The same appliers replay the log, so
memory has what the log says, before a restart and after it.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from barnabas.errors import KafkaError
from barnabas.offsets.pending import Producer
from barnabas.offsets.records import Record
from barnabas.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from barnabas.wire.messages.group_records import GroupMetadataValue, OffsetCommitValue, encode_key, encode_value

Pair = tuple[CoordinatorKey, CoordinatorValue | None]
"""A record; one without a value is a tombstone."""

Applier = Callable[[Any, Any], None]
"""Applies a record: its key, and its value or None."""

Written = Callable[[KafkaError | None], object]
"""Called once, with None when the records are durable, or with the error for the client."""

logger = logging.getLogger(__name__)

VERSIONS: dict[type[CoordinatorValue], int] = {GroupMetadataValue: 3}
"""The versions of values that are not 0, as Apache Kafka 4.x writes them."""


class Write(Protocol):
    """Appends records of a group as one batch, as part of the producer's transaction if there is a producer.

    ``appended`` is called at once when the records are in the log, before any other append. ``written`` is called when
    they are durable, in the order of the log; without records, when all that was appended before is.
    """

    def __call__(
        self,
        group_id: str,
        records: Sequence[Record],
        written: Written,
        producer: Producer | None = None,
        appended: Callable[[], object] | None = None,
        /,
    ) -> None: ...


class Ledger:
    """The only way to change a group of the newer types."""

    def __init__(
        self,
        write: Write,
        applier_of: Callable[[type[CoordinatorKey]], Applier | None],
        appended: Callable[[Sequence[Pair]], object],
    ) -> None:
        """:param applier_of: returns the applier of records with that key, or None
        :param appended: called with the records of each batch, after they have been applied
        """
        self._write = write
        self._appended = appended
        self._applier_of = applier_of
        self._appliers: dict[type[CoordinatorKey], Applier | None] = {}

    def commit(self, group_id: str, records: Sequence[Pair], done: Written) -> None:
        """Appends the records as one batch, applies them in order, and calls ``done`` when they are durable.

        Records that cannot be appended are not applied: ``done`` gets the error, and nothing has changed. Without
        records ``done`` is called when earlier ones are durable: what the client is told may rest on them.
        """
        if not records:
            self._write(group_id, (), done)
            return
        encoded = [(encode_key(key), None if value is None else _encoded(value)) for key, value in records]
        self._write(group_id, encoded, done, None, lambda: self._apply_all(records))

    def _apply_all(self, records: Sequence[Pair]) -> None:
        for key, value in records:
            self.apply(key, value)
        self._appended(records)

    def apply(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """Applies a record that is in the log. One without an applier is ignored."""
        key_type = type(key)
        if key_type not in self._appliers:
            self._appliers[key_type] = self._applier_of(key_type)
        applier = self._appliers[key_type]
        if applier is not None:
            applier(key, value)


def log_failure(group_id: str, what: str) -> Written:
    """Returns a callback that logs the failure of a write that no client waits for."""

    def written(error: KafkaError | None) -> None:
        if error is not None:
            logger.warning("group %s: cannot write %s: %s", group_id, what, error)

    return written


def _encoded(value: CoordinatorValue) -> bytes:
    assert not isinstance(value, OffsetCommitValue), "offsets have a version that depends on what they hold"
    return encode_value(value, VERSIONS.get(type(value), 0))
