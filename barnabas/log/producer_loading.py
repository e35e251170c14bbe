"""Restores the producer state of a log from the latest snapshot and the batches after it.

Knows nothing of the rules for sequences and epochs.
"""

from collections.abc import Sequence

from barnabas.log.producer_state import ProducerState
from barnabas.log.segment import Segment


def load_producers(producers: ProducerState, segments: Sequence[Segment], start_offset: int, end_offset: int) -> None:
    """Replaces the state in ``producers`` by that of the records from ``start_offset`` to below ``end_offset``.

    :param segments: hold these records, oldest first
    :raises CorruptMessage: a segment cannot be parsed
    :raises OSError: a file cannot be read
    """
    snapshot = producers.load_snapshot(start_offset, end_offset)
    from_offset = start_offset if snapshot is None else snapshot
    ends = [segment.base_offset for segment in segments[1:]]
    for segment, end in zip(segments, [*ends, end_offset], strict=False):
        if end <= from_offset:
            continue
        for place in segment.scan(segment.locate(from_offset) if from_offset > segment.base_offset else 0):
            producers.replay(segment.batch_at(place))
