"""Conversion of record batches to message sets for old consumers."""

import pytest

from barnabas.errors import UnsupportedCompressionType
from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key
from barnabas.records.down_conversion import down_convert
from barnabas.records.message_set import messages_in, records_of_message

T0 = 1_600_000_000_000
NEW = [(b"k", b"one", T0 + 5, [("h", b"x")]), (None, b"two", T0), (b"gone", None, T0 + 9)]
OLD = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]


def batch(base_offset=0, records=NEW, **options):
    return bytes(build_batch(records, base_offset=base_offset, **options))


def read(data):
    return [tuple(record)[:4] for message in messages_in(data) for record in records_of_message(message)]


@pytest.mark.parametrize("codec", OLD, ids=lambda codec: codec.name.lower())
@pytest.mark.parametrize("magic", [0, 1])
def test_what_is_kept(magic, codec):
    data = down_convert(batch(10, compression=codec), magic, first_offset=10)
    messages = list(messages_in(data))
    assert all(message.is_intact and message.magic == magic for message in messages)
    assert [message.codec for message in messages] == ([codec] if codec else [0, 0, 0])
    assert read(data) == [
        (10 + at, timestamp if magic else -1, key, value) for at, (key, value, timestamp, *_) in enumerate(NEW)
    ]


@pytest.mark.parametrize("codec", OLD, ids=lambda codec: codec.name.lower())
def test_the_logs_time(codec):
    data = down_convert(batch(compression=codec, log_append_time_ms=T0 + 77), 1, first_offset=0)
    assert all(message.is_log_append_time for message in messages_in(data))
    assert {timestamp for _, timestamp, *_ in read(data)} == {T0 + 77}
    assert not any(message.is_log_append_time for message in messages_in(down_convert(batch(), 0, first_offset=0)))


def test_plain_records_before_the_offset_are_left_out():
    assert [each[0] for each in read(down_convert(batch(10), 1, first_offset=11))] == [11, 12]
    packed = batch(10, compression=Compression.GZIP)
    assert [each[0] for each in read(down_convert(packed, 1, first_offset=11))] == [10, 11, 12]


def test_markers_are_skipped():
    marker = batch(3, [(control_key(ControlRecordType.COMMIT), bytes(6), T0)], is_control=True, is_transactional=True)
    assert down_convert(marker, 1, first_offset=3) == b""
    data = batch() + marker + batch(4)
    assert [each[0] for each in read(down_convert(data, 1, first_offset=0))] == [0, 1, 2, 4, 5, 6]


def test_a_batch_that_was_emptied():
    emptied = bytearray(batch(records=[]))
    emptied[26] = 4  # its last offset stays
    from barnabas.records.builder import sign

    sign(emptied)
    assert RecordBatch.parse(emptied).last_offset == 4
    for codec in OLD[:2]:
        assert (
            down_convert(bytes(emptied) if not codec else batch(records=[], compression=codec), 1, first_offset=0)
            == b""
        )


def test_zstd():
    packed = batch(3, compression=Compression.ZSTD)
    with pytest.raises(UnsupportedCompressionType):
        down_convert(packed + batch(6), 1, first_offset=3)
    assert [each[0] for each in read(down_convert(batch() + packed + batch(6), 1, first_offset=0))] == [0, 1, 2]


def test_it_is_no_larger_than_what_was_read():
    small = [(None, b"x", T0)] * 20
    first = down_convert(batch(records=small), 1, first_offset=0)
    assert len(first) > len(batch(records=small))
    data = batch(records=small) + batch(20, [(None, bytes(1000), T0)] * 3) + batch(23)
    found = down_convert(data, 1, first_offset=0)
    assert found.startswith(first)
    assert len(found) <= len(data)
    assert [each[0] for each in read(found)] == list(range(22))


def test_a_piece_at_the_end_is_left_out():
    data = batch() + batch(3)[:-1]
    assert [each[0] for each in read(down_convert(data, 1, first_offset=0))] == [0, 1, 2]
