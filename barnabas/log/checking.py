"""Checking a segment batch by batch, as recovery does: where it stops making sense, and what its good batches say.

Knows nothing of directories, nor of what becomes of a damaged segment. Done for each batch of gigabytes, it looks at as
little as can be, and only asks what is wrong where something is: damage, a hole, or a batch that was not read whole.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import KafkaError
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.producer_state import BATCHES_KEPT, ProducerState
from barnabas.log.scan import MIN_LENGTH
from barnabas.log.segment import MAX_SIZE, Segment
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

STRIDE: Final = 4 << 20  # bytes read at once

_MARKED: Final = TRANSACTIONAL_BIT | CONTROL_BIT

#: base offset, length, leader epoch, magic, CRC, attributes, last offset delta, max timestamp, producer id
_HEADER: Final = Struct(">qiibIHi8xqq")

Header = tuple[int, int, int, int, int, int, int, int, int]


class Damage(NamedTuple):
    """Where a segment stops making sense."""

    position: int
    offset: int  #: of the first record that is lost
    reason: str


class Following(NamedTuple):
    """What is known of what comes after a segment."""

    base_offset: int | None  #: of the next segment; None when the one being checked is the last
    may_have_holes: bool  #: whether compaction may have taken records away, also from the last segment


class SegmentCheck:
    """One segment being checked; what is learned goes into ``epochs`` and ``producers`` as the batches are read."""

    __slots__ = (
        "_following", "_in_transaction", "_indexed", "_recent", "aborted", "epochs", "expected", "index", "latest",
        "latest_offset", "producers", "segment", "time_index",
    )  # fmt: skip

    def __init__(
        self, segment: Segment, expected: int, following: Following, epochs: LeaderEpochs, producers: ProducerState
    ) -> None:
        self.segment = segment
        self.expected = expected  #: the offset after the last good record; at first what the first one should have
        self.epochs = epochs
        self.producers = producers
        self.index, self.time_index = OffsetIndex(segment.base_offset), TimeIndex(segment.base_offset)
        self.latest, self.latest_offset = NO_TIMESTAMP, segment.base_offset
        self.aborted: list[AbortedTransaction] = []
        self._following = following
        self._indexed = 0  # where the batch starts that has the last entry
        # Where the last batches of each producer are in the piece at hand: those before them would be forgotten anyway.
        self._recent: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=BATCHES_KEPT))
        self._in_transaction = set(producers.transactions.open.values())

    def run(self) -> Damage | None:
        """Go through all batches; the damage, if there is any. Raises OSError."""
        segment, position, damage = self.segment, 0, None
        while position < segment.size and damage is None:
            piece = self._read(STRIDE, position)
            at, reason = self._check(piece, position)
            if at == 0 and reason is None:
                at, reason = self._check_long(piece, position)
            position += at
            if reason is not None:
                damage = Damage(position, self.expected, reason)
        if self._following.base_offset is not None:
            self.time_index.maybe_append(self.latest, self.latest_offset)
        return damage

    def _read(self, size: int, position: int) -> memoryview:
        return memoryview(self.segment.file.pread(min(size, self.segment.size - position), position))

    def _check_long(self, piece: memoryview, position: int) -> tuple[int, str | None]:
        """:meth:`_check` of a batch that is longer than what is read at once; or there is not all of it."""
        left = self.segment.size - position
        if len(piece) < HEADER_SIZE:
            return 0, f"{left} bytes are left, too few for a batch"
        size = LOG_OVERHEAD + _HEADER.unpack_from(piece)[1]
        at, reason = self._check(self._read(size, position), position) if size <= left else (0, None)
        return at, f"{left} bytes are left of a batch of {size}" if at == 0 and reason is None else reason

    def _check(self, piece: memoryview, position: int) -> tuple[int, str | None]:
        """Check the batches that are whole in ``piece``, which was read at ``position``.

        Gives where in it they end, and what is wrong with the one there.
        """
        read_header, size = _HEADER.unpack_from, len(piece)
        index, interval, indexed = self.index, self.segment.index_interval, self._indexed - position
        expected, most, epoch_now = self.expected, self.segment.base_offset + MAX_SIZE, self.epochs.latest
        latest, recent, in_transaction = self.latest, self._recent, self._in_transaction
        at, end, reason = 0, size - HEADER_SIZE, None
        while at <= end:
            header = read_header(piece, at)
            base_offset, length, epoch, magic, crc, attributes, delta, timestamp, producer_id = header
            behind, last_offset = at + LOG_OVERHEAD + length, base_offset + delta
            if not (
                base_offset == expected <= last_offset <= most
                and magic == MAGIC
                and length >= MIN_LENGTH
                and behind <= size  # or the slice would be shorter than the length says, and might still be right
                and crc32c(piece[at + CHECKED_FROM : behind]) == crc
            ):
                if behind > size and magic == MAGIC:
                    break  # it was not read whole
                self.expected = expected
                if (reason := self._what_is_wrong(piece, at, position, header)) is not None:
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
            at, expected = behind, last_offset + 1
        for noted in recent.values():
            self._take_in(piece, noted)
        recent.clear()
        self.expected, self.latest, self._indexed = expected, latest, position + indexed
        return at, reason

    # ------------------------------------------------------------ producers

    def _replay(self, piece: memoryview, at: int, producer_id: int) -> str | None:
        """A batch that begins or ends a transaction; why it cannot be one, if it cannot."""
        self._take_in(piece, self._recent.pop(producer_id, ()))
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

    def _take_in(self, piece: memoryview, noted: Iterable[int]) -> None:
        """Let the producers' state know of data at these places, which begins no transaction."""
        for at in noted:
            self.producers.replay(RecordBatch.parse(piece, at))

    # ------------------------------------------------------------ damage

    def _what_is_wrong(self, piece: memoryview, at: int, position: int, header: Header) -> str | None:
        """Why there is no good batch ``at`` that place of ``piece``; None when it only follows a hole that may be."""
        base_offset, length, _, magic, crc, _, delta, *_ = header
        last_offset = base_offset + delta
        if magic != MAGIC:
            return f"the magic byte is {magic}"
        if length < MIN_LENGTH:
            return f"the batch's length is {length}"
        if crc32c(piece[at + CHECKED_FROM : at + LOG_OVERHEAD + length]) != crc:
            return "the batch's CRC is not that of its bytes"
        if delta < 0 or base_offset < self.expected or last_offset - self.segment.base_offset > MAX_SIZE:
            return f"the batch's offsets {base_offset} to {last_offset} do not follow {self.expected - 1}"
        return self._why_no_hole(base_offset, last_offset, position + at + LOG_OVERHEAD + length)

    def _why_no_hole(self, base_offset: int, last_offset: int, behind: int) -> str | None:
        """Why the offsets before a batch cannot just be missing; None when compaction may have taken them away.

        The CRC does not cover the base offset. Compaction leaves the active segment alone, and order everywhere.
        """
        next_segment, may_have_holes = self._following
        if next_segment is None and not may_have_holes:
            return f"the batch's base offset {base_offset} leaves a gap"
        next_offset = next_segment
        if behind + HEADER_SIZE <= self.segment.size:
            next_offset = self.segment.offset_at(behind)
        if next_offset is not None and next_offset <= last_offset:
            return f"the batch's base offset {base_offset} leaves a gap, and {next_offset} follows"
        return None
