"""The producers' state out of a log: a snapshot, and the batches that came after it.

Knows nothing of the rules by which producers are judged.
"""

from collections.abc import Sequence

from barnabas.log.producer_state import ProducerState
from barnabas.log.segment import Segment


def load_producers(producers: ProducerState, segments: Sequence[Segment], start_offset: int, end_offset: int) -> None:
    """Let ``producers`` become what the records from ``start_offset`` to below ``end_offset`` make them.

    ``segments`` are those that hold these records, oldest first. Raises OSError, CorruptMessage.
    """
    snapshot = producers.load_snapshot(start_offset, end_offset)
    from_offset = start_offset if snapshot is None else snapshot
    ends = [segment.base_offset for segment in segments[1:]]
    for segment, end in zip(segments, [*ends, end_offset], strict=False):
        if end <= from_offset:
            continue
        for place in segment.scan(segment.locate(from_offset) if from_offset > segment.base_offset else 0):
            producers.replay(segment.batch_at(place))
