"""Removing records from a batch, also from corrupt ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import InvalidRecord
from barnabas.log.cleaning.filtering import find_records, rebuild_batch, record_starts, retained_records
from barnabas.log.cleaning.offset_map import OffsetMap
from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import body_of, records_of

HUGE = 2**40

records = st.lists(
    st.tuples(
        st.binary(max_size=70),
        st.one_of(st.none(), st.binary(max_size=200), st.just(bytes(20_000))),
        st.one_of(st.integers(-100, 100), st.integers(-HUGE, HUGE)),
    ),
    min_size=1,
    max_size=150,
)


def made(*content: tuple, **options: object) -> tuple[RecordBatch, bytes]:
    batch = RecordBatch.parse(build_batch(content, base_offset=10, **options))
    return batch, body_of(batch)


@given(
    records,
    st.data(),
    st.sampled_from([None, 0, 1_700_000_000_000]),
    st.sampled_from([Compression.NONE, Compression.ZSTD]),
)
def test_any_records_can_be_retained_unchanged(content, data, horizon, codec):
    batch, body = made(*content, compression=codec)
    offsets = sorted(data.draw(st.sets(st.integers(10, 9 + len(content)), min_size=1)))
    starts = find_records(body, batch.count, 10, offsets)
    every = record_starts(body, batch.count)
    assert starts == [every[offset - 10] for offset in offsets]
    rebuilt, max_timestamp = rebuild_batch(batch, body, starts, horizon)
    found = RecordBatch.parse(rebuilt)
    found.check_crc()
    wanted = [record for record in records_of(batch) if record.offset in offsets]
    assert list(records_of(found)) == wanted
    assert max_timestamp == found.max_timestamp == max(-1, *(record.timestamp for record in wanted))
    assert found.base_timestamp == (wanted[0].timestamp if horizon is None else horizon)


@given(records)
def test_records_beyond_the_map_are_retained(content):
    batch, body = made(*content)
    starts, has_tombstones = retained_records(body, batch.count, 10, OffsetMap(1, -1), drops_tombstones=False)
    assert starts == record_starts(body, batch.count)
    assert has_tombstones == any(value is None for _, value, _ in content)


def test_offsets_with_gaps_are_not_found():
    _, body = made((b"a", b"1", 0), (b"b", b"2", 0))
    backwards = bytearray(body)
    first, second = record_starts(body, 2)
    backwards[first + 3], backwards[second + 3] = 2, 0
    assert find_records(body, 2, 10, [11]) == [second]
    assert find_records(bytes(backwards), 2, 10, [11]) is None


@pytest.mark.parametrize("size", [0, 1, 5, 6, 7, 200])
def test_a_body_that_ends_early_or_late_is_refused(size):
    _, body = made((b"key", b"value" * 20, 0), (b"other", b"value" * 20, 300))
    wrong = (body + body)[:size] if size < len(body) else body + b"more"
    for refuse in (
        lambda: retained_records(wrong, 2, 10, OffsetMap(1, -1), drops_tombstones=False),
        lambda: find_records(wrong, 2, 10, [11]),
        lambda: record_starts(wrong, 2),
    ):
        with pytest.raises(InvalidRecord):
            refuse()
