"""What a recording leaves out."""

import pytest

from barnabas.proxy.withheld import Records, Withholding, change_of, changed_records
from barnabas.records.batch import Compression, batches
from barnabas.records.builder import build_batch
from barnabas.records.message_set import build_messages, build_wrapper, messages_in, records_of_message
from barnabas.records.record import Record, records_of
from barnabas.wire.frames import requests
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.share_fetch import ShareFetchResponse

WRITTEN = [
    (b"k", b"tea", 1000, [("h", b"x"), ("n", None)]),
    (None, b"", 999),
    (b"k", None, 1001),
    (b"a" * 100, b"milk", 1002),
]


def built(**more):
    return build_batch(WRITTEN, base_offset=7, producer_id=4, producer_epoch=1, base_sequence=9, **more)


def contents(data):
    return [(each.key, each.value, dict(each.headers)) for batch in batches(data) for each in records_of(batch)]


@pytest.mark.parametrize("codec", Compression)
def test_what_is_left_out_leaves_the_batch_as_it_was(codec):
    before = built(compression=codec, is_transactional=True)
    after = changed_records(before + before, change_of(Records.NONE, b""))
    for one in batches(after):
        (other, _) = batches(before + before)
        assert one.is_intact()
        for name in ("base_offset", "attributes", "last_offset_delta", "base_timestamp", "max_timestamp", "producer_id",
                     "producer_epoch", "base_sequence", "count", "partition_leader_epoch"):  # fmt: skip
            assert getattr(one, name) == getattr(other, name)
        was = [(each.offset, each.timestamp) for each in records_of(other)]
        assert [(each.offset, each.timestamp) for each in records_of(one)] == was
    assert contents(after) == 2 * [
        (b"", b"", {"h": b"", "n": None}), (None, b"", {}), (b"", None, {}), (b"", b"", {})
    ]  # fmt: skip


def test_equal_keys_have_equal_hashes_of_their_length():
    first, empty, third, last = contents(changed_records(built(), change_of(Records.HASH, b"secret")))
    assert first[0] == third[0] not in (b"k", None)
    assert (len(first[0]), len(last[0])) == (8, 100)
    assert empty == (None, b"", {})
    assert third[1] is None
    assert set(first[2]) == {"h", "n"}
    assert first[2]["h"] != b"x"
    again = contents(changed_records(built(), change_of(Records.HASH, b"another")))
    assert again[0][0] != first[0]


def test_records_stay_where_they_are_to_be_recorded_whole():
    assert change_of(Records.WHOLE, b"") is None


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_older_formats(magic):
    records = [Record(3, 8 if magic else -1, b"k", b"tea"), Record(4, 9 if magic else -1, None, b"milk")]
    data = build_wrapper(records, magic, Compression.GZIP) + b"".join(build_messages(records, magic))
    after = list(messages_in(changed_records(data, change_of(Records.NONE, b""))))
    assert all(each.is_intact and each.magic == magic for each in after)
    found = [record for each in after for record in records_of_message(each)]
    assert found == 2 * [records[0]._replace(key=b"", value=b""), records[1]._replace(value=b"")]


def test_control_records_say_nothing_of_anybody():
    batch = build_batch([(b"\0\0\0\1", b"\0\0\0\0\0\0", 5)], is_control=True, is_transactional=True)
    assert changed_records(batch, change_of(Records.NONE, b"")) == batch


def test_what_cannot_be_read_is_left_out():
    damaged = bytearray(built(compression=Compression.GZIP))
    damaged[70:90] = bytes(20)
    assert changed_records(damaged, change_of(Records.HASH, b"")) == b""
    assert changed_records(b"\0" * 16 + b"\7" * 80, change_of(Records.HASH, b"")) == b""


def test_only_messages_with_records_or_secrets_are_touched():
    whole, none = (Withholding(change_of(each, b""), requests()) for each in (Records.WHOLE, Records.NONE))
    assert [none.touches(each) for each in (ProduceRequest, FetchResponse, ShareFetchResponse)] == [True] * 3
    assert not any(whole.touches(each) for each in (ProduceRequest, FetchResponse, ShareFetchResponse))
    assert not none.touches(FetchRequest)
    assert whole.touches(SaslAuthenticateRequest)


def test_tokens_are_never_recorded():
    withholding = Withholding(None, requests())
    request, answer = SaslAuthenticateRequest(auth_bytes=b"\0a\0xyzzy"), SaslAuthenticateResponse(auth_bytes=b"v=xyzzy")
    assert withholding.withhold(request)
    assert withholding.withhold(answer)
    assert (request.auth_bytes, answer.auth_bytes) == (b"", b"")
