"""The records that consumers have fetched, in the recording and in this run.

Knows nothing of requests. The number of records in one response depends on timing; the record at an offset does not. So
records are compared by offset, and missing ones are reported at the end.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.errors import KafkaError
from barnabas.records.batch import MAGIC, MAGIC_AT, RecordBatch, batches
from barnabas.records.control import control_record_type
from barnabas.records.message_set import messages_in, records_of_message
from barnabas.records.record import Record, records_of
from barnabas.replay.meanings import Meaning
from barnabas.replay.translation import Scope, Translation
from barnabas.wire.types import Buffer

Place = tuple[str | None, int | None]


class Content(NamedTuple):
    """The compared fields of a record."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Any, ...]
    timestamp: int | None  #: None if the broker has set it
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    control: str | None  #: of a transaction marker

    def __repr__(self) -> str:
        return self.control or f"{self.key!r}: {self.value!r}"


class Fetched:
    """Records by partition and offset, with the ids of this run."""

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self._recorded: dict[Place, dict[int, int]] = {}
        self._replayed: dict[Place, dict[int, int]] = {}

    def compare(self, scope: Scope, recorded: Buffer | None, replayed: Buffer | None) -> Iterator[tuple[str, Any]]:
        """Takes the records of two responses. Yields the offsets whose records differ, each with both records.

        A record that one of the responses does not have is compared once another response has it.
        """
        place = scope[:2]
        theirs, ours = self._recorded.setdefault(place, {}), self._replayed.setdefault(place, {})
        before = {}
        for offset, content in self._recorded_contents(scope, recorded or b""):
            before[offset] = content
            theirs[offset] = hash(content)
        after = dict(_contents(replayed or b""))
        ours.update((offset, hash(content)) for offset, content in after.items())
        for offset in sorted({*before, *after}):
            if offset in theirs and offset in ours and theirs[offset] != ours[offset]:
                yield f"[{offset}]", (before.get(offset), after.get(offset))

    def missing(self) -> Iterator[tuple[Place, str]]:
        """Yields, by partition, the offsets that consumers fetched in the recording but not in this run."""
        for place, theirs in self._recorded.items():
            offsets = sorted(theirs.keys() - self._replayed[place].keys())
            if offsets:
                yield place, ranges(offsets)

    def _recorded_contents(self, scope: Scope, data: Buffer) -> Iterator[tuple[int, Content]]:
        value = self._translation.value
        for offset, content in _contents(data):
            of = scope._replace(producer_id=content.producer_id)
            yield (
                self._translation.offset(scope, offset),
                content._replace(
                    producer_id=value(Meaning.PRODUCER_ID, of, content.producer_id),
                    producer_epoch=value(Meaning.PRODUCER_EPOCH, of, content.producer_epoch),
                ),
            )


def ranges(offsets: list[int]) -> str:
    """Returns ascending numbers as text.

    >>> ranges([3, 4, 5, 9])
    '3 to 5, 9'
    """
    found: list[list[int]] = []
    for offset in offsets:
        if found and found[-1][-1] == offset - 1:
            found[-1][1:] = [offset]
        else:
            found.append([offset])
    return ", ".join(" to ".join(map(str, each)) for each in found)


def _contents(data: Buffer) -> Iterator[tuple[int, Content]]:
    """Yields the records that can be read, with their offsets."""
    try:
        if len(data) > MAGIC_AT and data[MAGIC_AT] < MAGIC:
            for message in messages_in(data):
                timed = not message.is_log_append_time
                for record in records_of_message(message):
                    yield record.offset, _content(record, timed, (-1, -1, False), None)
            return
        for batch in batches(data):
            yield from _of_batch(batch)
    except KafkaError:
        return


def _of_batch(batch: RecordBatch) -> Iterator[tuple[int, Content]]:
    producer = batch.producer_id, batch.producer_epoch, batch.is_transactional
    for record in records_of(batch):
        control = None
        if batch.is_control:
            kind = control_record_type(record.key)
            control = kind.name if kind is not None else "unknown"
        timed = not batch.is_log_append_time and not batch.is_control
        yield record.offset, _content(record, timed, producer, control)


def _content(record: Record, timed: bool, producer: tuple[int, int, bool], control: str | None) -> Content:
    headers = tuple(record.headers or ())
    value = None if control else record.value  # a marker has the epoch of the coordinator
    return Content(record.key, value, headers, record.timestamp if timed else None, *producer, control)
