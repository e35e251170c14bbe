"""Maps the ids, epochs and offsets of a recording to those of this run: they are learned from responses, and put into
requests.

Knows nothing of connections, nor of how responses are compared.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.errors import KafkaError
from barnabas.faults.subjects import TOPIC_ARRAYS, partition_of, topic_of
from barnabas.records.batch import MAGIC, MAGIC_AT, batches
from barnabas.replay.meanings import Meaning, is_given, meaning_of
from barnabas.wire.schema import Struct
from barnabas.wire.types import Buffer

_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AT: Final = 43
"""The position of producer id and epoch in a batch (:mod:`barnabas.records.batch`)."""


class Scope(NamedTuple):
    """The topic, partition, group and so on that a structure is about, with the ids of the recording."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    producer_id: int | None = None

    def within(self, structure: Struct, array: str, topic_name: Callable[[bytes], str | None]) -> "Scope":
        """Returns the scope of a structure in this one.

        :param array: the name of the field that it is in
        :param topic_name: finds a topic of the recording by its id
        """
        topic = topic_of(structure, topic_name, is_topic=array in TOPIC_ARRAYS)
        partition = partition_of(structure)
        group = getattr(structure, "group_id", None)
        producer_id = getattr(structure, "producer_id", getattr(structure, "v3_and_below_producer_id", None))
        return Scope(
            self.topic if topic is None else topic,
            self.partition if partition is None else partition,
            group or self.group,
            self.producer_id if producer_id is None else producer_id,
        )


#: By meaning, the part of the scope to which its values belong.
_KEYS: Final[dict[Meaning, Callable[[Scope], Any]]] = {
    Meaning.NODE: lambda scope: None,
    Meaning.LOG_DIR: lambda scope: None,
    Meaning.TOPIC_ID: lambda scope: None,
    Meaning.MEMBER_ID: lambda scope: None,
    Meaning.SESSION_ID: lambda scope: None,
    Meaning.PRODUCER_ID: lambda scope: None,
    Meaning.PRODUCER_EPOCH: lambda scope: scope.producer_id,
    Meaning.GENERATION: lambda scope: scope.group,
    Meaning.LEADER_EPOCH: lambda scope: (scope.topic, scope.partition),
}


class Translation:
    """Values of the recording, mapped to those of this run."""

    def __init__(self) -> None:
        self._values: dict[tuple[Meaning, Any, Any], Any] = {}
        self._shifts: dict[tuple[str | None, int | None], int] = {}
        self.topics: dict[bytes, str] = {}  #: the names of the recording's topics, by their ids in it

    def value(self, meaning: Meaning, scope: Scope, recorded: Any) -> Any:
        """Returns the value of this run for a value of the recording; the same value if it is unknown."""
        if not is_given(recorded):
            return recorded
        if meaning is Meaning.OFFSET:
            return max(self.offset(scope, recorded), 0) if recorded >= 0 else recorded
        if meaning is Meaning.LOG_DIR and "," in recorded:
            return ",".join(self.value(meaning, scope, each) for each in recorded.split(","))
        of = _KEYS.get(meaning)
        return recorded if of is None else self._values.get((meaning, of(scope), _plain(recorded)), recorded)

    def offset(self, scope: Scope, recorded: int) -> int:
        """Returns the offset in this run for an offset of the recording; negative if the log starts later."""
        return recorded + self._shifts.get(scope[:2], 0)

    def learn(self, meaning: Meaning, scope: Scope, recorded: Any, replayed: Any) -> None:
        """Stores the value of this run for a value of the recording, unless there is one; the newest leader epoch."""
        if not is_given(recorded) or not is_given(replayed):
            return
        if meaning is Meaning.OFFSET:
            if recorded >= 0 and replayed >= 0 and scope.partition is not None:
                self._shifts.setdefault(scope[:2], replayed - recorded)
        elif meaning is Meaning.LOG_DIR and "," in recorded:
            for pair in zip(recorded.split(","), replayed.split(","), strict=False):
                self.learn(meaning, scope, *pair)
        elif (of := _KEYS.get(meaning)) is not None:
            key, value = (meaning, of(scope), _plain(recorded)), _plain(replayed)
            if meaning is Meaning.LEADER_EPOCH:
                self._values[key] = max(self._values.get(key, value), value)
            else:
                self._values.setdefault(key, value)

    def renew(self, meaning: Meaning, scope: Scope, recorded: Any, replayed: Any) -> None:
        """Stores the value of this run for a value of the recording, in place of an earlier one."""
        self._values[meaning, _KEYS[meaning](scope), _plain(recorded)] = _plain(replayed)

    def knows(self, meaning: Meaning, scope: Scope, recorded: Any) -> bool:
        """Returns whether the value of this run is known for a value of the recording."""
        of = _KEYS.get(meaning)
        return of is not None and (meaning, of(scope), _plain(recorded)) in self._values

    # ------------------------------------------------------------ requests

    def scope(self, message: Struct) -> Scope:
        """Returns the scope of a whole message."""
        return Scope().within(message, "", self.topics.get)

    def translate(self, structure: Any, version: int, scope: Scope) -> bool:
        """Puts the values of this run into a request. Returns whether that changed it."""
        has_changed = False
        for field in structure.wire_fields():
            value = getattr(structure, field.name)
            if version not in field.versions or value is None:
                continue
            if isinstance(field.kind, type):
                for each in value if field.is_array else (value,):
                    has_changed |= self.translate(each, version, scope.within(each, field.name, self.topics.get))
                continue
            meaning = meaning_of(structure, field)
            if meaning is None:
                continue
            new = self._of_this_run(meaning, scope, value, is_array=field.is_array)
            if new is not value and new != value:
                setattr(structure, field.name, new)
                has_changed = True
        return has_changed

    def _of_this_run(self, meaning: Meaning, scope: Scope, value: Any, *, is_array: bool) -> Any:
        if meaning is Meaning.RECORDS:
            return self._records(scope, value)
        if is_array:
            return [self.value(meaning, scope, each) for each in value]
        return self.value(meaning, scope, value)

    def _records(self, scope: Scope, data: Buffer) -> Buffer:
        """Returns the batches of a request with the producer of this run; the same data if it stays."""
        if len(data) <= MAGIC_AT or data[MAGIC_AT] != MAGIC:
            return data  # messages of older formats have no producer
        copy = bytearray(data)
        has_changed = False
        try:
            for batch in batches(copy):
                if not batch.has_producer_id or not batch.is_intact():
                    continue
                recorded = batch.producer_id, batch.producer_epoch
                scope = scope._replace(producer_id=batch.producer_id)
                new = (
                    self.value(Meaning.PRODUCER_ID, scope, batch.producer_id),
                    self.value(Meaning.PRODUCER_EPOCH, scope, batch.producer_epoch),
                )
                if new != recorded:
                    _PRODUCER.pack_into(batch.buffer, _PRODUCER_AT, *new)
                    batch.sign()
                    has_changed = True
        except KafkaError:
            return data  # corrupt data is sent unchanged
        return bytes(copy) if has_changed else data


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
