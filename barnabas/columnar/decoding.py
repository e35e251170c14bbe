"""Decodes the records of a Fetch response into Arrow columns, all records of many batches at once.

Knows nothing of connections. Its results are those of ``barnabas.records.record``, which reads records one by one.

The headers of batches are read one by one, and compressed bodies are decompressed. The rest is done per column instead
of per record: the positions of the records (``boundaries``), of their fields (``fields``), and copies of keys and
values (``tables``).
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.columnar.boundaries import record_starts
from barnabas.columnar.fields import read_fields
from barnabas.columnar.tables import NO_TIMESTAMP_TYPE, Rows, schema, table_of, table_of_records
from barnabas.columnar.varints import Numbers
from barnabas.errors import CorruptMessage, InvalidRecord, KafkaError
from barnabas.records.batch import (
    CHECKED_FROM,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from barnabas.records.checksum import crc32c
from barnabas.records.control import ControlRecordType, control_record_type
from barnabas.records.message_set import MAGIC_V0, MESSAGE_MIN, messages_in, records_of_message
from barnabas.records.record import RECORD_MIN_SIZE, Record, body_of, records_of

__all__ = ["Aborted", "Decoded", "decode_each", "reach", "schema"]

_HEAD: Final = Struct(">qi4xB")  # offset, length, magic: the same in all formats
GROUP_BYTES: Final = 8 << 20  # bytes of uncompressed records in one table; a single batch may have more
MAX_ROWS: Final = 1 << 17  # in one table

Buffer = bytes | memoryview


class Aborted(NamedTuple):
    """An aborted transaction, as a Fetch response lists it."""

    producer_id: int
    first_offset: int


class Decoded(NamedTuple):
    """Records, and the next offset after their batches: there may be fewer records than offsets."""

    batch: pa.RecordBatch | None
    next_offset: int


_Body = tuple[int, int, int, int, int, int, int]
"""The records of one batch: where they begin and end in the bytes of their group, their number, base offset, base
timestamp (for LogAppendTime the timestamp of all records), timestamp type, and the position of the batch's header in
the fetched bytes."""


def decode_each(
    data: Buffer,
    *,
    topic: str,
    partition: int,
    start: int,
    end: int | None = None,
    aborted: Sequence[Aborted] | None = None,
    headers: bool = False,
    check_crcs: bool = True,
) -> Iterator[Decoded]:
    """Yields the records in `data` from offset `start` to before `end`, in tables of a few megabytes (:func:`schema`).

    Control batches are skipped. With `aborted` (read_committed), so are records of aborted transactions.

    :param data: the records of a partition in a Fetch response: batches, or older message sets. A truncated last one is
        skipped.
    :raises CorruptMessage: a batch does not match its checksum or its own lengths; the message names topic, partition
        and offset. The tables of the batches before it may have been yielded by then.
    """
    return _Decoder(data, topic, partition, start, end, aborted, headers=headers, check_crcs=check_crcs).parts()


def reach(data: Buffer, start: int) -> int:
    """Returns the offset of the next fetch: the one after the last whole batch in `data`, or `start` if there is none.

    Reads only lengths, so that the next fetch can be sent before this one is decoded.
    """
    at, last, total = 0, -1, len(data)
    unpack = _HEAD.unpack_from
    while total - at >= _HEAD.size:
        length = unpack(data, at)[1]
        if length < MESSAGE_MIN or at + LOG_OVERHEAD + length > total:
            break
        at, last = at + LOG_OVERHEAD + length, at
    if last < 0:
        return start
    offset: int
    offset, length, magic = unpack(data, last)
    if magic >= MAGIC and length >= HEADER_SIZE - LOG_OVERHEAD:
        offset += HEADER.unpack_from(data, last)[6]  # last_offset_delta
    return max(start, offset + 1)


class _Decoder:
    """Decodes one fetch: collects batches in groups, and makes one or more tables of each group."""

    def __init__(
        self,
        data: Buffer,
        topic: str,
        partition: int,
        start: int,
        end: int | None,
        aborted: Sequence[Aborted] | None,
        *,
        headers: bool,
        check_crcs: bool,
    ) -> None:
        self.data = data
        self.view = memoryview(data)
        self.topic, self.partition = topic, partition
        self.start, self.end = start, end
        self.headers, self.check_crcs = headers, check_crcs
        self.transactions = None if aborted is None else _Transactions(aborted)
        self.next_offset = start
        self.bodies: list[_Body] = []
        self.unpacked: list[Buffer] = []  # the uncompressed bodies of a group, if some are not in the data as they are
        self.size = self.rows = 0
        self.old: list[tuple[Record, int]] = []  # records of message sets, with their timestamp types

    def parts(self) -> Iterator[Decoded]:
        at, total = 0, len(self.view)
        while total - at >= _HEAD.size:
            _, length, magic = _HEAD.unpack_from(self.view, at)
            if length < MESSAGE_MIN:
                raise self._corrupt(at, f"a batch has a length of {length}")
            after = at + LOG_OVERHEAD + length
            if after > total:
                break
            if magic < MAGIC:
                if self.bodies:
                    yield from self._tables()
                self._add_message(at, after)
            elif magic > MAGIC or length < HEADER_SIZE - LOG_OVERHEAD:
                raise self._corrupt(at, f"a batch of format {magic} cannot have {length} bytes")
            else:
                if self.old or (self.bodies and not self.unpacked and self.view[at + 22] & CODEC_MASK):
                    yield from self._tables()
                self._add_batch(at, after)
            at = after
            if self.size >= GROUP_BYTES or self.rows >= MAX_ROWS:
                yield from self._tables()
            if self.end is not None and self.next_offset >= self.end:
                break
        yield from self._tables()

    def _add_batch(self, at: int, after: int) -> None:
        """Adds the batch's records to the group, decompressed; or skips the batch."""
        (
            base_offset, _, _, _, crc, attributes, last_delta, base_timestamp, max_timestamp, producer_id, _, _, count,
        ) = HEADER.unpack_from(self.view, at)  # fmt: skip
        if self.check_crcs and crc32c(self.view[at + CHECKED_FROM : after]) != crc:
            raise self._corrupt(at, f"the checksum is not {crc}, as its header says")
        if base_offset < 0 or last_delta < 0:
            raise self._corrupt(at, f"a batch has base offset {base_offset} and last offset delta {last_delta}")
        last_offset = base_offset + last_delta
        if last_offset >= self.next_offset:
            self.next_offset = last_offset + 1
        if (attributes & CONTROL_BIT or self.transactions is not None) and (
            self._is_hidden(at, attributes, producer_id, last_offset)
        ):
            return
        if last_offset < self.start or (self.end is not None and base_offset >= self.end):
            return
        low, size = at + HEADER_SIZE, after - at - HEADER_SIZE
        if attributes & CODEC_MASK or self.unpacked:
            body = self._unpacked(at)
            self.unpacked.append(body)
            low, size = self.size, len(body)
        if not 0 < count <= size // RECORD_MIN_SIZE:
            if count or size:
                raise self._corrupt(at, f"a batch claims {count} records in {size} bytes")
            return
        self.size += size
        self.rows += count
        kind, timestamp = (1, max_timestamp) if attributes & LOG_APPEND_TIME_BIT else (0, base_timestamp)
        self.bodies.append((low, low + size, count, base_offset, timestamp, kind, at))

    def _unpacked(self, at: int) -> bytes:
        try:
            return body_of(RecordBatch.parse(self.view, at))
        except KafkaError as error:
            raise self._corrupt(at, str(error)) from error

    def _is_hidden(self, at: int, attributes: int, producer_id: int, last_offset: int) -> bool:
        """Returns whether the batch is hidden from the reader. A marker ends its producer's transaction."""
        if self.transactions is None:
            return True
        is_control = attributes & CONTROL_BIT != 0
        self.transactions.begin_up_to(last_offset)
        if is_control:
            if self._marker(at) is ControlRecordType.ABORT:
                self.transactions.end(producer_id)
            return True
        return attributes & TRANSACTIONAL_BIT != 0 and producer_id in self.transactions

    def _marker(self, at: int) -> ControlRecordType | None:
        try:
            for record in records_of(RecordBatch.parse(self.view, at)):
                return control_record_type(record.key)
        except KafkaError as error:
            raise self._corrupt(at, str(error)) from error
        return None  # compaction has removed its record

    def _add_message(self, at: int, after: int) -> None:
        """Adds the records of an entry of format v0 or v1, one by one, since such entries are rare."""
        try:
            for message in messages_in(self.view[at:after]):
                if self.check_crcs and not message.is_intact:
                    raise CorruptMessage(f"the checksum is not {message.crc}, as its header says")
                kind = NO_TIMESTAMP_TYPE if message.magic == MAGIC_V0 else int(message.is_log_append_time)
                records = records_of_message(message)
                self.next_offset = max(self.next_offset, message.offset + 1, records[-1].offset + 1)
                stop = self.next_offset if self.end is None else self.end
                self.old += ((record, kind) for record in records if self.start <= record.offset < stop)
        except KafkaError as error:
            raise self._corrupt(at, str(error)) from error
        self.size += after - at
        self.rows = len(self.old)

    def _tables(self) -> Iterator[Decoded]:
        """Yields the collected records as tables; the last one has the next offset after all batches."""
        bodies, unpacked, old = self.bodies, self.unpacked, self.old
        self.bodies, self.unpacked, self.old, self.size, self.rows = [], [], [], 0, 0
        tables: list[pa.RecordBatch] = []
        if old:
            records, kinds = zip(*old, strict=True)
            tables.append(table_of_records(records, kinds, self.topic, self.partition, headers=self.headers))
        elif bodies:
            data = (unpacked[0] if len(unpacked) == 1 else b"".join(unpacked)) if unpacked else self.data
            try:
                tables += self._tables_of(data, bodies)
            except (InvalidRecord, CorruptMessage) as error:
                raise self._culprit(bodies, error) from error
        for table in tables[:-1]:
            yield Decoded(table, int(table["offset"][-1].as_py()) + 1)
        yield Decoded(tables[-1] if tables else None, self.next_offset)

    def _tables_of(self, data: Buffer, bodies: Sequence[_Body]) -> list[pa.RecordBatch]:
        array = np.frombuffer(data, dtype=np.uint8)
        of_all = np.fromiter(chain.from_iterable(bodies), dtype=np.int64, count=7 * len(bodies))
        low, high, counts, *of_batches, _ = np.ascontiguousarray(of_all.reshape(-1, 7).T)
        starts = record_starts(data, array, low, high, counts)
        fields = read_fields(data, array, starts)
        base_offset, base_timestamp, timestamp_type = (
            np.repeat(column, counts) if len(counts) > 1 else np.broadcast_to(column, len(starts))
            for column in of_batches
        )
        offsets = base_offset + fields.offset_deltas
        deltas = fields.timestamp_deltas
        timestamps = _sum(base_timestamp, deltas * (timestamp_type == 0) if timestamp_type.any() else deltas)
        rows = Rows(
            fields.keys,
            fields.values,
            offsets,
            timestamps,
            timestamp_type.astype(np.int32),
            fields.headers if self.headers else None,
        )
        wanted = offsets >= self.start
        if self.end is not None:
            wanted &= offsets < self.end
        if not wanted.all():
            rows = rows.keep(wanted)
        return [
            table_of(data, rows.part(first, first + MAX_ROWS), self.topic, self.partition, headers=self.headers)
            for first in range(0, len(rows.offsets), MAX_ROWS)
        ]

    def _culprit(self, bodies: Sequence[_Body], error: KafkaError) -> CorruptMessage:
        """Returns the error of the batch that cannot be read, which reading it record by record finds."""
        for *_, header_at in bodies:
            try:
                for _ in records_of(RecordBatch.parse(self.view, header_at)):
                    pass
            except KafkaError as found:
                return self._corrupt(header_at, str(found))
        return self._corrupt(bodies[0][-1], str(error))

    def _corrupt(self, at: int, what: str) -> CorruptMessage:
        offset = int.from_bytes(self.view[at : at + 8], "big", signed=True)
        return CorruptMessage(f"{self.topic}-{self.partition} is corrupt at offset {offset}: {what}")


class _Transactions:
    """The producers with an open aborted transaction at a batch, as in Java's ``CompletedFetch``."""

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        self.ahead = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self.open: set[int] = set()

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self.open

    def begin_up_to(self, offset: int) -> None:
        while self.ahead and self.ahead[-1].first_offset <= offset:
            self.open.add(self.ahead.pop().producer_id)

    def end(self, producer_id: int) -> None:
        self.open.discard(producer_id)


def _sum(base: Numbers, delta: Numbers) -> Numbers:
    """Returns the sum.

    :raises InvalidRecord: the sum has more than 64 bits.
    """
    total = base + delta
    if (((base ^ total) & (delta ^ total)) < 0).any():
        raise InvalidRecord("A record's timestamp has more than 64 bits.")
    return total
