"""What a cleaner is told, and what it answers: plain numbers and texts, which cross a pipe to another process as JSON.

Knows nothing of how logs are cleaned, nor of who does it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class CleaningFailed(Exception):
    """This log cannot be cleaned, and will not be the next time either; neither its bytes nor the disk are at fault."""


class SegmentFile(NamedTuple):
    """A sealed segment as it is on the disk."""

    base_offset: int
    size: int  #: bytes of its ``.log``
    modified_ms: int  #: when its ``.log`` last changed; some retention counts from there


class Producer(NamedTuple):
    """What the partition remembers of an idempotent producer: the batch of its last sequence must not vanish."""

    producer_epoch: int
    last_data_offset: int  #: the last offset of its last batch of data, -1 if there is none that is remembered


class CleaningJob(NamedTuple):
    """One pass over one log (``LogToClean``); offsets are the log's, times in ms, sizes in bytes."""

    directory: str  #: of the partition
    segments: list[SegmentFile]  #: from the log's first to the last one that may be cleaned; all sealed
    first_dirty_offset: int  #: the cleaner's checkpoint: below it no two records have the same key
    end_offset: int  #: nothing at or after it is touched: the base offset of the first segment that is not listed
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_entries: int  #: how many keys the pass may remember (``log.cleaner.dedupe.buffer.size`` and its load factor)
    max_bytes_per_second: float  #: read and written together (``log.cleaner.io.max.bytes.per.second``); inf: no limit
    producers: dict[int, Producer]  #: by producer id

    def with_ends(self) -> list[tuple[SegmentFile, int]]:
        """Each segment, and the offset at which the next one begins."""
        ends = [*(segment.base_offset for segment in self.segments[1:]), self.end_offset]
        return list(zip(self.segments, ends, strict=False))  # without a segment there is no end either

    def to_json(self) -> dict[str, Any]:
        """What :meth:`from_json` makes the same job of; JSON has only texts for keys."""
        return self._asdict() | {"producers": {str(key): value for key, value in self.producers.items()}}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "CleaningJob":
        """Raises TypeError, KeyError or ValueError when this is no job."""
        return cls(
            **{
                **fields,
                "segments": [SegmentFile(*each) for each in fields["segments"]],
                "producers": {int(key): Producer(*each) for key, each in fields["producers"].items()},
            }
        )


class CleanedGroup(NamedTuple):
    """Segments that were cleaned into one, which lies beside them, synced, with ``.cleaned`` after its files' names."""

    base_offset: int
    replaces: list[int]  #: base offsets of the segments whose place it is to take
    size: int  #: bytes of the ``.log``; may be 0
    max_timestamp: int  #: the latest of its records, -1 if there is none
    max_timestamp_offset: int  #: the last offset of the batch that has it; the base offset if there is none
    modified_ms: int  #: that of the last segment it replaces
    has_txn_index: bool  #: whether there is a ``.txnindex.cleaned`` too


class Statistics(NamedTuple):
    """What a pass did."""

    bytes_mapped: int  #: read to learn the latest offset of each key
    records_mapped: int
    map_entries: int  #: keys that were remembered
    map_is_full: bool  #: whether that was all there was room for, and the pass ended before ``end_offset``
    bytes_read: int
    records_read: int
    bytes_kept: int
    records_kept: int
    seconds: float
    cpu_seconds: float


class CleaningResult(NamedTuple):
    """The end of a pass."""

    next_dirty_offset: int  #: where the next pass begins: the checkpoint, once all groups are in place
    statistics: Statistics
