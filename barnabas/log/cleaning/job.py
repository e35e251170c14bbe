"""The job of a cleaner, and its results: plain numbers and texts, which are sent to another process as JSON.

Knows nothing of how logs are cleaned.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class CleaningFailed(Exception):
    """The log cannot be cleaned, and a retry would fail too. Neither its bytes nor the disk are the reason."""


class SegmentFile(NamedTuple):
    """A closed segment on the disk."""

    base_offset: int
    size: int  #: of its ``.log``, in bytes
    modified_ms: int  #: modification time of its ``.log``; retention of records without timestamps uses it


class Producer(NamedTuple):
    """The state of an idempotent producer. The batch with its last sequence must be retained."""

    producer_epoch: int
    last_data_offset: int  #: the last offset of its last known batch of data; -1 if there is none


class CleaningJob(NamedTuple):
    """One pass over one log (Kafka's ``LogToClean``). Times are in ms, sizes in bytes."""

    directory: str  #: of the partition
    segments: list[SegmentFile]  #: from the log's first to the last one that may be cleaned; all are closed
    first_dirty_offset: int  #: the cleaner's checkpoint: below it no two records have the same key
    end_offset: int  #: the base offset of the first segment that is not cleaned
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_entries: int  #: maximum number of keys in the offset map, by ``log.cleaner.dedupe.buffer.size``
    max_bytes_per_second: float  #: of reads and writes (``log.cleaner.io.max.bytes.per.second``); inf: no limit
    producers: dict[int, Producer]  #: by producer id

    def with_ends(self) -> list[tuple[SegmentFile, int]]:
        """Returns each segment with its end offset."""
        ends = [*(segment.base_offset for segment in self.segments[1:]), self.end_offset]
        return list(zip(self.segments, ends, strict=False))  # a job without segments has no ends

    def to_json(self) -> dict[str, Any]:
        """Returns the job in a form for :meth:`from_json`. Producer ids become texts, as JSON keys must be."""
        return self._asdict() | {"producers": {str(key): value for key, value in self.producers.items()}}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "CleaningJob":
        """Returns the job that :meth:`to_json` was called on.

        :raises TypeError: fields are missing; KeyError or ValueError: their values are invalid
        """
        return cls(
            **{
                **fields,
                "segments": [SegmentFile(*each) for each in fields["segments"]],
                "producers": {int(key): Producer(*each) for key, each in fields["producers"].items()},
            }
        )


class CleanedGroup(NamedTuple):
    """A cleaned segment, made from one or more segments. Its files are fsynced and end with ``.cleaned``."""

    base_offset: int
    replaces: list[int]  #: base offsets of the segments that it replaces
    size: int  #: of the ``.log``, in bytes; may be 0
    max_timestamp: int  #: -1 if no record has a timestamp
    max_timestamp_offset: int  #: the last offset of the batch with that timestamp; the base offset if there is none
    modified_ms: int  #: that of the last segment it replaces
    has_txn_index: bool  #: whether there is a ``.txnindex.cleaned``


class Statistics(NamedTuple):
    """What a pass read and wrote."""

    bytes_mapped: int  #: read to build the offset map
    records_mapped: int
    map_entries: int  #: keys in the offset map
    map_is_full: bool  #: whether the offset map was full, so that the pass ended before ``end_offset``
    bytes_read: int
    records_read: int
    bytes_kept: int
    records_kept: int
    seconds: float
    cpu_seconds: float


class CleaningResult(NamedTuple):
    """The result of a pass."""

    next_dirty_offset: int  #: where the next pass starts: the new checkpoint, once all groups are swapped in
    statistics: Statistics
