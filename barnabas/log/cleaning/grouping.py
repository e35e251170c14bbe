"""Which segments become one when they are cleaned, so that small ones do not stay for ever.

Knows nothing of what is in them: only sizes and offsets count.
"""

from collections.abc import Iterator, Mapping

from barnabas.log.cleaning.job import CleaningJob, SegmentFile
from barnabas.log.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX

MAX_RELATIVE_OFFSET = 2**31 - 1

Group = list[SegmentFile]


def groups(job: CleaningJob, next_dirty_offset: int, sizes: Mapping[str, int]) -> Iterator[Group]:
    """Neighbours that fit into one segment by the bytes that they have now (``Cleaner.groupSegmentsBySize``).

    Those that begin at ``next_dirty_offset`` or later are let be.

    ``sizes`` are those of the files in the directory, by name. What is left of a group is most often less, so that
    passes join more and more; a segment above the limits is a group of its own.
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
