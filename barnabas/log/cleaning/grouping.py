"""Groups the segments that are cleaned into one, so that small segments do not accumulate.

Knows nothing of the records: it uses only sizes and offsets.
"""

from collections.abc import Iterator, Mapping

from barnabas.log.cleaning.job import CleaningJob, SegmentFile
from barnabas.log.limits import MAX_RELATIVE_OFFSET
from barnabas.log.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX

Group = list[SegmentFile]


def groups(job: CleaningJob, next_dirty_offset: int, sizes: Mapping[str, int]) -> Iterator[Group]:
    """Yields groups of adjacent segments whose current sizes fit into one segment (``Cleaner.groupSegmentsBySize``).

    Cleaning shrinks most groups, so that later passes join more segments. A segment above the limits is a group of its
    own. Segments from ``next_dirty_offset`` on are left out.

    :param sizes: of the files in the directory, by name
    """
    group: Group = []
    taken = (0, 0, 0)
    limits = (job.segment_bytes, job.segment_index_bytes, job.segment_index_bytes)
    for segment, end in job.with_ends():
        if segment.base_offset >= next_dirty_offset:
            break
        stem = f"{segment.base_offset:020d}"
        own = (segment.size, sizes.get(stem + INDEX_SUFFIX, 0), sizes.get(stem + TIME_INDEX_SUFFIX, 0))
        both = (taken[0] + own[0], taken[1] + own[1], taken[2] + own[2])
        fits = all(size <= limit for size, limit in zip(both, limits, strict=True))
        if group and fits and (not segment.size or end - 1 - group[0].base_offset <= MAX_RELATIVE_OFFSET):
            group.append(segment)
            taken = both
        else:
            if group:
                yield group
            group, taken = [segment], own
    if group:
        yield group
