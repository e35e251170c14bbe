"""Invalid requests that Apache Kafka accepts, found by sending them."""

import pytest

from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.metadata_records import AbortTransactionRecord


def test_bytes_left_over() -> None:
    data = HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(version=0)
    assert HeartbeatRequest.decode(data + b"and more", version=0).member_id == "m"


@pytest.mark.parametrize("flag", [1, 2, 255])
def test_any_bool_that_is_not_zero_is_true(flag: int) -> None:
    assert (
        MetadataRequest.decode(bytes.fromhex("ffffffff") + bytes((flag,)), version=4).allow_auto_topic_creation is True
    )


@pytest.mark.parametrize("count", ["ffffffff", "fffffffe", "80000000"])
def test_any_negative_count_is_null(count: str) -> None:
    assert MetadataRequest.decode(bytes.fromhex(count), version=1).topics is None


@pytest.mark.parametrize("count", ["00", "ffffffff0f", "8080808008"])
def test_any_compact_count_below_one_is_null(count: str) -> None:
    assert MetadataRequest.decode(bytes.fromhex(count + "01 00 00 00"), version=9).topics is None


def test_text_that_is_not_utf8() -> None:
    assert HeartbeatRequest.decode(bytes.fromhex("0002 ff67 00000001 0000"), version=0).group_id == "\ufffdg"


def flexible_fetch(tags: str) -> FetchRequest:
    body = "000001f4 00000001 00100000 00 00000000 ffffffff 01 01 01"
    return FetchRequest.decode(bytes.fromhex(body + tags), version=15)


def test_tags_out_of_order_and_unknown_ones_between() -> None:
    found = flexible_fetch("03 01 0d 00000005 0000000000000009 00  63 02 abcd  00 02 02 63")
    assert (found.replica_state.replica_id, found.replica_state.replica_epoch, found.cluster_id) == (5, 9, "c")


def test_a_tag_twice_counts_as_the_last() -> None:
    assert flexible_fetch("02 00 02 02 61 00 02 02 62").cluster_id == "b"


def test_the_size_of_a_known_tag_is_not_looked_at() -> None:
    assert flexible_fetch("01 00 7f 02 61").cluster_id == "a"


def test_a_tag_may_be_null_where_its_field_may() -> None:
    assert flexible_fetch("01 00 01 00").cluster_id is None
    assert AbortTransactionRecord.decode(bytes.fromhex("01 00 01 00"), version=0).reason is None


def test_tags_that_are_newer_than_we_are() -> None:
    found = ApiVersionsResponse.decode(bytes.fromhex("0000 02 0000 0000 000d 01 09 01 ff 00000000 01 63 00"), version=3)
    assert [(each.api_key, each.max_version) for each in found.api_keys] == [(0, 13)]
