"""The optional check of batches that are read from the disk (``barnabas.log.read.check.crcs``).

Knows nothing of who reads. By default a broker does not check, as Apache Kafka does not: clients check the CRC of what
they fetch, and followers check it before they append.
"""

from collections.abc import Sequence

from barnabas.errors import CorruptMessage
from barnabas.log.scan import corrupt
from barnabas.log.segment import Segment
from barnabas.records.batch import RecordBatch


def check_read(passed: Sequence[Segment], offset: int, data: bytes) -> None:
    """Checks ``data``, whole batches from the one that holds ``offset`` on, or from the first one after it.

    When ``offset`` is in no batch, the batches before are checked too: it may have been in one of them.

    :param passed: the segments that were searched for ``offset``; ``data`` is from the last one
    :raises CorruptMessage: a CRC does not match, or an offset, which no CRC covers, is out of order; the message
        names file and position
    """
    segment = passed[-1]
    first = _check(segment, segment.locate(offset), data, segment.base_offset) if data else offset + 1
    if first > offset:
        for before in passed:
            start = before.offset_index().position_before(offset)
            end = before.locate(offset) if before is segment else before.size
            _check(before, start, before.file.pread(end - start, start), before.base_offset)


def _check(segment: Segment, position: int, data: bytes, least: int) -> int:
    """Checks the batches in ``data``, which starts at ``position``. Returns the base offset of the first one."""
    at, first = 0, -1
    while at < len(data):
        try:
            batch = RecordBatch.parse(data, at)
            batch.check_crc()
        except CorruptMessage as error:
            reason = f"{error} This is the batch at offset {int.from_bytes(data[at : at + 8], signed=True)}."
            raise corrupt(segment.file, position + at, reason) from None
        if batch.base_offset < least or batch.last_offset_delta < 0:
            reason = f"offsets {batch.base_offset} to {batch.last_offset} cannot follow offset {least - 1}"
            raise corrupt(segment.file, position + at, reason)
        if first < 0:
            first = batch.base_offset
        at, least = at + batch.size_in_bytes, batch.next_offset
    return first
