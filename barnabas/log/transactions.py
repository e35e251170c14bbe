"""The transactions of one partition that hold back the last stable offset, and the markers that end them.

Knows nothing of sequences, files and the transaction coordinator: it sees only what is in the log. The rules are those
of Apache Kafka's ``ProducerStateManager`` (KIP-98).
"""

from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import InvalidRecord
from barnabas.log.limits import MAX_OFFSET
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.batch import CODEC_MASK, HEADER_SIZE, RecordBatch
from barnabas.records.control import ControlRecordType, control_record_type
from barnabas.records.record import records_of

ABORT: Final = int(ControlRecordType.ABORT)
COMMIT: Final = int(ControlRecordType.COMMIT)

_MARKER: Final = Struct(">hi")

_USUAL: Final = Struct(">5shhchic")  # length to key's length, key, value's length, value, number of headers
_USUAL_SIZE: Final = HEADER_SIZE + _USUAL.size
_USUAL_BYTES: Final = (b"\x20\x00\x00\x00\x08", b"\x0c", b"\x00")


class Marker(NamedTuple):
    """The record of a control batch with a producer id, which ends the producer's transaction."""

    is_abort: bool
    coordinator_epoch: int
    timestamp: int


def marker_of(batch: RecordBatch) -> Marker | None:
    """Returns the marker in a control batch; None when compaction has removed the record.

    :raises InvalidRecord: the batch holds something else
    """
    if batch.count == 1 and len(batch.buffer) == _USUAL_SIZE and not batch.attributes & CODEC_MASK:
        # The form that brokers write. Each transaction ends with one, and parsing it as a record takes longer.
        start, key, number, size, version, epoch, headers = _USUAL.unpack_from(batch.buffer, HEADER_SIZE)
        if (start, size, headers) == _USUAL_BYTES and key >= 0 and version >= 0 and 0 <= number <= COMMIT:
            timestamp = batch.max_timestamp if batch.is_log_append_time else batch.base_timestamp
            return Marker(number == ABORT, epoch, timestamp)
    record = next(records_of(batch), None)
    if record is None:
        return None
    kind = control_record_type(record.key)
    if kind is not ControlRecordType.ABORT and kind is not ControlRecordType.COMMIT:
        raise InvalidRecord(f"A control batch with a producer id holds no transaction marker but {kind!r}.")
    if record.value is None or len(record.value) < _MARKER.size:
        raise InvalidRecord(f"A transaction marker has {_MARKER.size} bytes, not {record.value!r}.")
    version, coordinator_epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise InvalidRecord(f"A transaction marker has version {version}.")
    return Marker(kind is ControlRecordType.ABORT, coordinator_epoch, record.timestamp)


class Transactions:
    """The first offsets of the transactions that are open or whose marker is not below the high watermark."""

    __slots__ = ("ended", "open")

    def __init__(self) -> None:
        self.open: dict[int, int] = {}  #: first offset -> producer id, by ascending offset
        self.ended: dict[int, int] = {}  #: first offset -> offset of the marker, at or above the high watermark

    def clear(self) -> None:
        self.open.clear()
        self.ended.clear()

    def begin(self, first_offset: int, producer_id: int) -> None:
        """Adds a transaction. ``first_offset`` is above the first offsets of all transactions added before."""
        self.open[first_offset] = producer_id

    def end(self, first_offset: int, producer_id: int, marker_offset: int) -> AbortedTransaction:
        """Ends a transaction. Returns its entry in the transaction index, for the case that it was aborted."""
        others = (offset for offset, other in self.open.items() if other != producer_id)
        stable = next(others, marker_offset + 1)
        self.open.pop(first_offset, None)
        self.ended[first_offset] = marker_offset
        return AbortedTransaction(producer_id, first_offset, marker_offset, stable)

    def commit(self, high_watermark: int) -> None:
        """Removes the ended transactions whose markers are below ``high_watermark``."""
        if not self.ended:
            return
        for first_offset in [first for first, marker in self.ended.items() if marker < high_watermark]:
            del self.ended[first_offset]

    @property
    def first_unstable_offset(self) -> int:
        """The lowest first offset; MAX_OFFSET when there is no transaction."""
        first = next(iter(self.open), MAX_OFFSET)
        return min(first, *self.ended) if self.ended else first
