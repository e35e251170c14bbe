"""The records of committed offsets, byte for byte as Apache Kafka 4.3.1 wrote them."""

import pytest

from barnabas.offsets.committed import CommittedOffset
from barnabas.offsets.records import commit_record, committed_offset, tombstone
from barnabas.wire.messages.group_records import OffsetCommitKey, OffsetCommitValue, decode_value

KEY = bytes.fromhex("0001 0006 73696d706c65 0001 74 00000000")
TOPIC_ID = bytes.fromhex("d348da116caa4aaa85da92fb75631094")
VALUE = bytes.fromhex("0004 0000000000000001 ffffffff 02 78 000001a1fe9774d3 01 00 10") + TOPIC_ID
EXPIRING = bytes.fromhex("0001 0000000000000001 0001 78 000001a1fe9774c0 000001a1fe98fb60")


def test_a_commit():
    committed = CommittedOffset(1, -1, "x", 0x1A1FE9774D3, topic_id=TOPIC_ID)
    assert commit_record("simple", "t", 0, committed) == (KEY, VALUE)


def test_a_commit_that_says_how_long_it_is_kept():
    committed = CommittedOffset(1, -1, "x", 0x1A1FE9774C0, 0x1A1FE98FB60, TOPIC_ID)
    assert commit_record("simple", "t", 0, committed) == (KEY, EXPIRING)


def test_a_commit_that_is_gone():
    assert tombstone("simple", "t", 0) == (KEY, None)


@pytest.mark.parametrize(
    ("value", "committed"),
    [
        (VALUE, CommittedOffset(1, -1, "x", 0x1A1FE9774D3, topic_id=TOPIC_ID)),
        (EXPIRING, CommittedOffset(1, -1, "x", 0x1A1FE9774C0, 0x1A1FE98FB60)),
        (bytes.fromhex("0000 0000000000000001 0001 78 0000000000000005"), CommittedOffset(1, -1, "x", 5)),
        (bytes.fromhex("0002 0000000000000001 0001 78 0000000000000005"), CommittedOffset(1, -1, "x", 5)),
        (bytes.fromhex("0003 0000000000000001 00000007 0001 78 0000000000000005"), CommittedOffset(1, 7, "x", 5)),
    ],
    ids=["4", "1", "0", "2", "3"],
)
def test_every_version_is_read(value, committed):
    decoded = decode_value(OffsetCommitKey(group="simple", topic="t", partition=0), value)
    assert isinstance(decoded, OffsetCommitValue)
    assert committed_offset(decoded) == committed
