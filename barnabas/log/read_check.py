"""Looking at what was read before it goes out: whether each batch is still the one that was written.

Knows nothing of who reads. Unless it is told otherwise (``barnabas.log.read.check.crcs``) a broker does without, as
Apache Kafka does: clients check the CRC of what they get, and a follower checks it before it writes.
"""

from collections.abc import Sequence

from barnabas.errors import CorruptMessage
from barnabas.log.scan import corrupt
from barnabas.log.segment import Segment
from barnabas.records.batch import RecordBatch


def check_read(passed: Sequence[Segment], offset: int, data: bytes) -> None:
    """Look at ``data``, whole batches from the one that holds ``offset`` on, or from the first after it.

    ``passed`` are the segments that were looked into for it; it is of the last one. Raises CorruptMessage, which names
    file and position, when a CRC is not that of the bytes, or when an offset, which no CRC covers, is not where it can
    be; also of batches that were passed over, when ``offset`` is in none: it may have been in one.
    """
    segment = passed[-1]
    first = _check(segment, segment.locate(offset), data, segment.base_offset) if data else offset + 1
    if first > offset:
        for before in passed:
            start = before.offset_index().position_before(offset)
            end = before.locate(offset) if before is segment else before.size
            _check(before, start, before.file.pread(end - start, start), before.base_offset)


def _check(segment: Segment, position: int, data: bytes, least: int) -> int:
    """Check the batches in ``data``, which is at ``position``; the first one's base offset."""
    at, first = 0, -1
    while at < len(data):
        try:
            batch = RecordBatch.parse(data, at)
            batch.check_crc()
        except CorruptMessage as error:
            reason = f"{error} It says that it is of offset {int.from_bytes(data[at : at + 8], signed=True)}."
            raise corrupt(segment.file, position + at, reason) from None
        if batch.base_offset < least or batch.last_offset_delta < 0:
            reason = f"offsets {batch.base_offset} to {batch.last_offset} cannot follow {least - 1}"
            raise corrupt(segment.file, position + at, reason)
        if first < 0:
            first = batch.base_offset
        at, least = at + batch.size_in_bytes, batch.next_offset
    return first
