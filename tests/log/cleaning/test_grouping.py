"""The groups of segments that are cleaned into one."""

from barnabas.log.cleaning.grouping import groups
from barnabas.log.cleaning.job import CleaningJob, SegmentFile
from barnabas.log.files import MemoryFiles
from tests.log.cleaning.building import LogBuilder


def grouped(
    sizes: list[int],
    *,
    bases: list[int] | None = None,
    end_offset: int = 10_000,
    next_dirty_offset: int = 2**40,
    files: dict[str, int] | None = None,
    **limits: int,
) -> list[list[int]]:
    """Returns the base offsets of each group."""
    found = [
        SegmentFile(base, size, 0) for base, size in zip(bases or range(0, 100 * len(sizes), 100), sizes, strict=True)
    ]
    job: CleaningJob = LogBuilder(MemoryFiles()).job(found, end_offset=end_offset, **limits)
    return [[segment.base_offset for segment in group] for group in groups(job, next_dirty_offset, files or {})]


def test_adjacent_segments_are_joined_while_they_fit():
    assert grouped([10, 20, 30, 40, 50], segment_bytes=60) == [[0, 100, 200], [300], [400]]
    assert grouped([10, 20, 30, 40, 50], segment_bytes=59) == [[0, 100], [200], [300], [400]]
    assert grouped([], segment_bytes=60) == []


def test_a_large_segment_is_a_group_of_its_own():
    assert grouped([100, 10, 100, 10, 10], segment_bytes=60) == [[0], [100], [200], [300, 400]]


def test_indexes_must_fit_too():
    for suffix in (".index", ".timeindex"):
        files = {f"{base:020d}{suffix}": 8 for base in (0, 100, 200)}
        assert grouped([1, 1, 1], files=files, segment_index_bytes=16) == [[0, 100], [200]]
        assert grouped([1, 1, 1], files=files, segment_index_bytes=24) == [[0, 100, 200]]


def test_relative_offsets_must_fit_into_31_bits():
    far = 2**31
    assert grouped([1, 1, 1], bases=[0, 5, far], end_offset=far + 9) == [[0, 5], [far]]
    assert grouped([1, 1], bases=[0, 5], end_offset=far) == [[0, 5]]
    assert grouped([1, 1], bases=[0, 5], end_offset=far + 1) == [[0], [5]]
    assert grouped([1, 0, 1], bases=[0, 5, far], end_offset=far + 9) == [[0, 5], [far]], "an empty one has no offsets"


def test_segments_from_the_next_dirty_offset_on_are_left_out():
    assert grouped([1, 1, 1], next_dirty_offset=101) == [[0, 100]]
    assert grouped([1, 1, 1], next_dirty_offset=100) == [[0]]
