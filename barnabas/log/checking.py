"""Recovery's check of a segment, batch by batch: finds the first damage, and collects indexes, epochs and producers.

Knows nothing of other files, nor of what happens to a damaged segment. Recovery may have to check gigabytes, so the
loop compares only a few fields of each batch. It finds out the reason only when a comparison fails: the batch is
damaged, follows a gap, or was not read completely.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import KafkaError
from barnabas.log.leader_epochs import UNDEFINED, LeaderEpochs
from barnabas.log.limits import MAX_RELATIVE_OFFSET
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.producer_state import BATCHES_KEPT, ProducerState
from barnabas.log.scan import MIN_LENGTH
from barnabas.log.segment import Segment
from barnabas.log.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.batch import (
    CHECKED_FROM,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from barnabas.records.checksum import crc32c

STRIDE: Final = 4 << 20  # bytes per read

_MARKED: Final = TRANSACTIONAL_BIT | CONTROL_BIT

#: base offset, length, leader epoch, magic, CRC, attributes, last offset delta, max timestamp, producer id
_HEADER: Final = Struct(">qiibIHi8xqq")

Header = tuple[int, int, int, int, int, int, int, int, int]


class Damage(NamedTuple):
    """The first damage in a segment."""

    position: int
    offset: int  #: of the first record that is lost
    reason: str


class Expectations(NamedTuple):
    """What is allowed after a segment's last batch."""

    next_base_offset: int | None  #: base offset of the next segment; None in the last one
    may_have_gaps: bool  #: whether compaction may have removed records, also from the last segment


class SegmentCheck:
    """The check of one segment. Adds the epochs and producers of its batches to ``epochs`` and ``producers``."""

    __slots__ = (
        "_expectations", "_in_transaction", "_indexed", "_recent", "aborted", "epoch", "epochs", "expected", "index",
        "latest", "latest_offset", "producers", "segment", "time_index",
    )  # fmt: skip

    def __init__(
        self,
        segment: Segment,
        expected: int,
        expectations: Expectations,
        epochs: LeaderEpochs,
        producers: ProducerState,
    ) -> None:
        self.segment = segment
        self.expected = expected  #: the offset after the last good record; initially that of the first record
        self.epoch = UNDEFINED  #: the leader epoch of the last good batch
        self.epochs = epochs
        self.producers = producers
        self.index, self.time_index = OffsetIndex(segment.base_offset), TimeIndex(segment.base_offset)
        self.latest, self.latest_offset = NO_TIMESTAMP, segment.base_offset
        self.aborted: list[AbortedTransaction] = []
        self._expectations = expectations
        self._indexed = 0  # position of the batch with the last index entry
        # Positions of each producer's last batches in the current piece. Producer state keeps no older ones.
        self._recent: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=BATCHES_KEPT))
        self._in_transaction = set(producers.transactions.open.values())

    def run(self) -> Damage | None:
        """Checks all batches. Returns the first damage, or None.

        :raises OSError: the file cannot be read
        """
        segment, position, damage = self.segment, 0, None
        while position < segment.size and damage is None:
            piece = self._read(STRIDE, position)
            at, reason = self._check(piece, position)
            if at == 0 and reason is None:
                at, reason = self._check_long(piece, position)
            position += at
            if reason is not None:
                damage = Damage(position, self.expected, reason)
        if self._expectations.next_base_offset is not None:
            self.time_index.maybe_append(self.latest, self.latest_offset)
        return damage

    def _read(self, size: int, position: int) -> memoryview:
        return memoryview(self.segment.file.pread(min(size, self.segment.size - position), position))

    def _check_long(self, piece: memoryview, position: int) -> tuple[int, str | None]:
        """Checks a batch that is larger than one read, or not complete. Returns what :meth:`_check` does."""
        left = self.segment.size - position
        if len(piece) < HEADER_SIZE:
            return 0, f"{left} bytes are left, too few for a batch"
        size = LOG_OVERHEAD + _HEADER.unpack_from(piece)[1]
        at, reason = self._check(self._read(size, position), position) if size <= left else (0, None)
        return at, f"{left} bytes are left of a batch of {size}" if at == 0 and reason is None else reason

    def _check(self, piece: memoryview, position: int) -> tuple[int, str | None]:
        """Checks the whole batches in ``piece``, which was read at ``position``.

        Returns where in ``piece`` the good batches end, and the reason if the next one is damaged.
        """
        read_header, size = _HEADER.unpack_from, len(piece)
        index, interval, indexed = self.index, self.segment.index_interval, self._indexed - position
        expected, most, epoch_now = self.expected, self.segment.base_offset + MAX_RELATIVE_OFFSET, self.epochs.latest
        latest, recent, in_transaction = self.latest, self._recent, self._in_transaction
        at, end, reason, last_epoch = 0, size - HEADER_SIZE, None, self.epoch
        while at <= end:
            header = read_header(piece, at)
            base_offset, length, epoch, magic, crc, attributes, delta, timestamp, producer_id = header
            behind, last_offset = at + LOG_OVERHEAD + length, base_offset + delta
            if not (
                base_offset == expected <= last_offset <= most
                and magic == MAGIC
                and length >= MIN_LENGTH
                and behind <= size  # otherwise the slice is shorter than the batch, and its CRC might match by chance
                and crc32c(piece[at + CHECKED_FROM : behind]) == crc
            ):
                if behind > size and magic == MAGIC:
                    break  # the batch was not read completely
                self.expected = expected
                if (reason := self._damage_at(piece, at, position, header)) is not None:
                    break
            if producer_id >= 0:
                if attributes & _MARKED and (attributes & CONTROL_BIT or producer_id not in in_transaction):
                    if (reason := self._replay(piece, at, producer_id)) is not None:
                        break
                else:
                    recent[producer_id].append(at)
            if timestamp > latest:
                latest, self.latest_offset = timestamp, last_offset
            if at - indexed > interval:
                indexed = at
                index.append(last_offset, position + at)
                self.time_index.maybe_append(latest, self.latest_offset)
            if epoch > epoch_now:
                self.epochs.replay(epoch, base_offset)
                epoch_now = epoch
            at, expected, last_epoch = behind, last_offset + 1, epoch
        for positions in recent.values():
            self._add_to_producers(piece, positions)
        recent.clear()
        self.expected, self.latest, self._indexed, self.epoch = expected, latest, position + indexed, last_epoch
        return at, reason

    # ------------------------------------------------------------ producers

    def _replay(self, piece: memoryview, at: int, producer_id: int) -> str | None:
        """Adds a batch that begins or ends a transaction. Returns the reason if it is damaged."""
        self._add_to_producers(piece, self._recent.pop(producer_id, ()))
        batch = RecordBatch.parse(piece, at)
        try:
            aborted = self.producers.replay(batch)
        except KafkaError as error:
            return str(error)
        if aborted is not None:
            self.aborted.append(aborted)
        if batch.is_control:
            self._in_transaction.discard(producer_id)
        else:
            self._in_transaction.add(producer_id)
        return None

    def _add_to_producers(self, piece: memoryview, positions: Iterable[int]) -> None:
        """Adds batches of data, which begin no transaction, to the producer state."""
        for at in positions:
            self.producers.replay(RecordBatch.parse(piece, at))

    # ------------------------------------------------------------ damage

    def _damage_at(self, piece: memoryview, at: int, position: int, header: Header) -> str | None:
        """Returns why the batch ``at`` that place of ``piece`` is damaged; None when it only follows an allowed gap."""
        base_offset, length, _, magic, crc, _, delta, *_ = header
        last_offset = base_offset + delta
        if magic != MAGIC:
            return f"the magic byte is {magic}"
        if length < MIN_LENGTH:
            return f"the batch's length is {length}"
        if crc32c(piece[at + CHECKED_FROM : at + LOG_OVERHEAD + length]) != crc:
            return "the batch's CRC does not match"
        if delta < 0 or base_offset < self.expected or last_offset - self.segment.base_offset > MAX_RELATIVE_OFFSET:
            return f"the batch's offsets {base_offset} to {last_offset} do not follow {self.expected - 1}"
        return self._wrong_gap(base_offset, last_offset, position + at + LOG_OVERHEAD + length)

    def _wrong_gap(self, base_offset: int, last_offset: int, behind: int) -> str | None:
        """Returns why the gap before a batch is damage; None when compaction may have made it.

        The CRC does not cover the base offset, so a gap may be a flipped bit. Compaction makes no gap in the active
        segment, and keeps the offsets in order.
        """
        next_base_offset, may_have_gaps = self._expectations
        if next_base_offset is None and not may_have_gaps:
            return f"the batch's base offset {base_offset} leaves a gap"
        next_offset = next_base_offset
        if behind + HEADER_SIZE <= self.segment.size:
            next_offset = self.segment.offset_at(behind)
        if next_offset is not None and next_offset <= last_offset:
            return f"the batch's base offset {base_offset} leaves a gap, and {next_offset} follows"
        return None
