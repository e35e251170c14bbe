"""The offset map: the latest offset of each key, and its size."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import InvalidRecord
from barnabas.log.cleaning.offset_map import BYTES_PER_ENTRY, DIGEST_SIZE, OffsetMap, digest, entries_for
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import body_of

keys = st.one_of(st.none(), st.binary(max_size=3), st.binary(min_size=38, max_size=42), st.just(b"k" * 300))


def body(*keys_: bytes | None) -> bytes:
    return body_of(RecordBatch.parse(build_batch((key, b"value" * 30, 5) for key in keys_)))


@given(st.lists(st.lists(keys, min_size=1, max_size=70), max_size=8), st.integers(0, 50))
def test_the_map_equals_a_dict(batches, first):
    known, model, offset = OffsetMap(10_000, -1), {}, 0
    for batch in batches:
        assert known.add(body(*batch), len(batch), offset, first)
        for key in batch:
            if key is not None and offset >= first:
                model[key if len(key) < DIGEST_SIZE else digest(key)] = offset
            offset += 1
    assert known.latest == model


def test_no_key_equals_the_digest_of_another():
    long = b"k" * 100
    known = OffsetMap(10, -1)
    known.add(body(long, digest(long)), 2, 0, 0)
    assert len(known) == 2


def test_a_full_map():
    known = OffsetMap(3, 9)
    assert known.add(body(b"a", b"b", None, b"a"), 4, 10, 0)
    assert len(known) == 2
    assert not known.add(body(None, b"c", None, b"a", b"d"), 5, 14, 0)
    # A full map does not update known keys, either, as in Apache Kafka.
    assert (known.latest, known.latest_offset) == ({b"a": 13, b"b": 11, b"c": 15}, 15)


@pytest.mark.parametrize("cut", range(1, 12))
@pytest.mark.parametrize("entries", [1, 1000])
def test_a_body_that_ends_early_is_refused(cut, entries):
    data = body(b"key", b"other")[:-cut]
    with pytest.raises(InvalidRecord):
        OffsetMap(1000, -1).add(data, 2, 0, 0)
    with pytest.raises(InvalidRecord):
        OffsetMap(1000, -1).add(body(b"key") + b"more", 1, 0, 0)


def test_the_number_of_entries_for_a_buffer():
    assert entries_for(128 << 20, 0.9) == int((128 << 20) * 0.9) // BYTES_PER_ENTRY
    assert entries_for(1, 0.9) == 1


def test_the_memory_per_entry_within_a_tenth():
    keys = [b"%039d" % number for number in range(90_000)]  # slightly more than a size at which the dict grows
    bodies = [body(*keys[at : at + 500]) for at in range(0, len(keys), 500)]
    del keys
    tracemalloc.start()
    known = OffsetMap(100_000, -1)
    for number, data in enumerate(bodies):
        known.add(data, 500, number * 500, 0)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / len(known) == pytest.approx(BYTES_PER_ENTRY, rel=0.1)
