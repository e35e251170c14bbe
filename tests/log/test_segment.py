"""One segment: reads return whole batches within any limits, and invalid indexes are rebuilt."""

import pytest

from barnabas.errors import CorruptMessage
from barnabas.log.index_cache import IndexCache
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.segment import Segment
from barnabas.records.batch import batches

SIZES = [1, 3, 40, 1, 1, 7, 200, 2, 1, 1, 1, 90, 5]


@pytest.fixture
def segment(place, batch):
    """Creates thirteen batches of 1 to 200 records, with base offset 1000 and index entries every 500 bytes."""
    segment = Segment.create(place.files, place.path, 1000, IndexCache(), now_ms=0)
    segment.index_interval = 500
    offset = 1000
    for number, count in enumerate(SIZES):
        made = batch(count, base_offset=offset, timestamp=5000 + 10 * number)
        segment.append(made.buffer, made.last_offset, made.max_timestamp)
        offset = made.next_offset
    return segment


def places(segment):
    return list(segment.scan())


def end_of(segment):
    return places(segment)[-1].last_offset + 1


def reopened(segment, cache=None):
    segment.finish_time_index()
    segment.write_indexes()
    segment.close()
    again = Segment(segment._files, segment.directory, segment.base_offset, segment.size, cache or IndexCache())
    again.index_interval = 500
    return again


def test_scanning(segment):
    found = places(segment)
    assert [place.last_offset - place.base_offset + 1 for place in found] == SIZES
    assert found[0].base_offset == 1000
    assert found[-1].position + found[-1].size == segment.size
    assert [place.max_timestamp for place in found] == [5000 + 10 * number for number in range(13)]
    assert list(segment.scan(found[4].position, stride=100)) == found[4:]


def test_locating_every_offset(segment):
    for closed in (False, True):
        if closed:
            segment = reopened(segment)
        for place in places(segment):
            for offset in range(place.base_offset, place.last_offset + 1):
                assert segment.locate(offset) == place.position
        assert segment.locate(end_of(segment)) == segment.size


@pytest.mark.parametrize("minimum_one", [True, False])
def test_reads_return_as_many_whole_batches_as_fit(segment, minimum_one):
    end = end_of(segment)
    content = segment.file.pread(segment.size, 0)
    all_places = places(segment)
    for number, first in enumerate(all_places):
        for max_bytes in (0, 1, 60, 61, 150, 500, 1000, first.size - 1, first.size, first.size + 1, 4000, 1 << 20):
            stop = first.position
            for place in all_places[number:]:
                behind = place.position + place.size
                if behind - first.position > max_bytes and not (minimum_one and place is first):
                    break
                stop = behind
                if behind - first.position > max_bytes:
                    break
            data = segment.read(first.last_offset, max_bytes, end, end, minimum_one)
            assert data == content[first.position : stop]


def test_reads_stop_at_the_limit(segment):
    end = end_of(segment)
    for place in places(segment):
        for up_to in range(place.base_offset, place.last_offset + 2):
            data = segment.read(1000, 1 << 20, up_to, end, True) or b""
            whole = [batch.last_offset for batch in batches(data)]
            assert all(last < up_to for last in whole)
            assert len(data) == (place.position + place.size if up_to > place.last_offset else place.position)


def test_a_first_batch_above_the_limit_is_not_read(segment):
    end = end_of(segment)
    third = places(segment)[2]
    assert segment.read(third.base_offset, 10, third.last_offset, end, True) is None
    assert segment.read(third.base_offset, 10, third.last_offset + 1, end, True) is not None


def test_the_index_has_the_entries_of_kafka(segment):
    index = segment.offset_index()
    since, expected = 0, []
    for place in places(segment):
        if since > 500:
            expected.append((place.last_offset - 1000, place.position))
            since = 0
        since += place.size
    assert list(zip(index.relative_offsets, index.positions, strict=True)) == expected
    assert len(expected) >= 3


def test_a_rebuild_writes_the_same_indexes(segment):
    index, time_index = segment.offset_index().encode(), segment.time_index().encode()
    again, time_again = segment.rebuild_indexes()
    assert (again.encode(), time_again.encode()) == (index, time_index)


def test_index_entries_are_written_on_request(segment):
    path = segment.path(".index")
    assert segment._files.read(path) == b""
    segment.write_indexes()
    assert segment._files.read(path) == segment.offset_index().encode()
    segment.write_indexes()
    assert segment._files.read(path) == segment.offset_index().encode()


@pytest.mark.parametrize(
    "lie",
    [
        b"",
        b"\0" * 16,
        b"\1\2\3",
        OffsetIndex.decode(bytes.fromhex("00000009 00000010"), 0).encode(),
        bytes.fromhex("7fffffff 7fffffff"),
        bytes.fromhex("00000001 000f0000"),
    ],
)
def test_an_invalid_index_is_rebuilt(segment, lie):
    truth = segment.offset_index().encode()
    segment = reopened(segment)
    segment._files.create(segment.path(".index")).write(lie)
    data = segment.read(1100, 1 << 20, end_of(segment), end_of(segment), True)
    assert next(batches(data)).base_offset <= 1100 <= next(batches(data)).last_offset
    if lie:
        assert segment._files.read(segment.path(".index")) == truth


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_rebuilt(segment, suffix):
    segment = reopened(segment)
    truth = segment._files.read(segment.path(suffix))
    segment._files.delete(segment.path(suffix))
    assert segment.offset_for_timestamp(5000 + 60, 0)[0] == 5060
    assert segment._files.read(segment.path(suffix)) == truth


def test_a_search_by_timestamp(segment):
    for closed in (False, True):
        if closed:
            segment = reopened(segment)
        for place in places(segment):
            for timestamp in range(place.max_timestamp - 9, place.max_timestamp + 1):
                assert segment.offset_for_timestamp(timestamp, 0) == (place.max_timestamp, place.base_offset, -1)
        assert segment.offset_for_timestamp(5000 + 130, 0) is None
        assert segment.offset_for_timestamp(0, 1002) == (5010, 1002, -1)


def test_the_maximum_timestamp_is_the_last_entry(segment):
    again = reopened(segment)
    assert again.largest_timestamp() == (5120, end_of(segment) - 1)


def test_finding_the_end(segment):
    end = end_of(segment)
    again = reopened(segment)
    assert again.find_end() == end
    assert again.largest_timestamp() == (5120, end - 1)


def test_truncating(segment, batch):
    all_places = places(segment)
    for number in range(len(all_places) - 1, -1, -1):
        place = all_places[number]
        assert segment.truncate(place.last_offset, now_ms=0) == place.base_offset
        assert segment.size == place.position
        assert places(segment) == all_places[:number]
        assert segment.max_timestamp == (all_places[number - 1].max_timestamp if number else -1)
        made = batch(1, base_offset=place.base_offset)
        segment.append(made.buffer, made.last_offset, made.max_timestamp)
        assert segment.locate(place.base_offset) == place.position


def test_garbage_is_refused(segment):
    place = places(segment)[5]
    data = bytearray(segment._files.read(segment.path(".log")))
    data[place.position + 8 : place.position + 12] = b"\xff\xff\xff\xf0"
    segment._files.create(segment.path(".log")).write(data)
    segment = reopened(segment)
    with pytest.raises(CorruptMessage, match=f"position {place.position}"):
        list(segment.scan())
    with pytest.raises(CorruptMessage):
        segment.locate(place.last_offset + 1)


def test_a_file_that_was_shortened(segment):
    segment.file.truncate(segment.size - 1)
    with pytest.raises(OSError, match="1 bytes early"):
        segment.read(1000, 1 << 20, end_of_whole := 10**6, end_of_whole, True)


def test_the_index_cache_is_bounded(place, batch):
    cache = IndexCache(max_bytes=100)
    made = []
    for base in range(0, 200, 20):
        segment = Segment.create(place.files, place.path, base, cache, now_ms=0)
        segment.index_interval = 0
        for offset in range(base, base + 5):
            one = batch(1, base_offset=offset)
            segment.append(one.buffer, offset, one.max_timestamp)
        segment.seal()
        made.append(segment)
    assert sum(segment._index is not None for segment in made) == 2
    assert cache.bytes <= 100
    for segment in made:
        assert segment.locate(segment.base_offset + 3) == 3 * one.size_in_bytes
    assert cache.bytes <= 100
    for segment in made:
        segment.close()
    assert cache.bytes == 0
