"""The records of a classic group, byte for byte as Apache Kafka 4.3.1 wrote them."""

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadline
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.classic_member import ClassicMember
from barnabas.groups.records import group_record, new_group_record
from barnabas.wire.messages.group_records import encode_key

KEY = bytes.fromhex("0002 0001 67")
NEW = bytes.fromhex("0003 0000 00000000 ffff ffff 000001a1fe977469 00000000")
MEMBER_ID = "probe-2d7673ed-6487-4761-a9b2-e83d2fe8900f"
SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 00000000")
STABLE = (
    bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000001 0005") + b"range" + b"\0\x2a"
    + MEMBER_ID.encode() + bytes.fromhex("000001a1fe977494 00000001 002a") + MEMBER_ID.encode()
    + bytes.fromhex("ffff 0005") + b"probe" + b"\0\x0a" + b"/127.0.0.1"
    + bytes.fromhex("00001388 00002710 0000000d") + SUBSCRIPTION + bytes.fromhex("00000003") + b"abc"
)  # fmt: skip
EMPTY = bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000002 ffff ffff 000001a1fe9774f7 00000000")


def group(now_ms, **fields):
    return ClassicGroup("g", now_ms, **fields)


def test_a_new_group():
    assert new_group_record(group(0x1A1FE977469)) == (KEY, NEW)


def test_a_stable_group():
    stable = group(0x1A1FE977494, generation_id=1, protocol_name="range")
    protocols = (("range", SUBSCRIPTION), ("sticky", b"other"))
    member = ClassicMember(MEMBER_ID, None, "probe", "/127.0.0.1", 5000, 10000, protocols, Deadline(print))
    stable.add(member, "consumer")
    assert group_record(stable, {MEMBER_ID: b"abc"}) == (KEY, STABLE)


def test_an_empty_group():
    empty = group(0x1A1FE9774F7, generation_id=2, protocol_type="consumer")
    assert group_record(empty, {}) == (KEY, EMPTY)


def test_a_group_that_is_gone():
    ((key, value),) = group(0).tombstones()
    assert (encode_key(key), value) == (KEY, None)


def test_a_group_of_whose_state_nobody_knows_since_when():
    old = group(ManualClock().time_ms())
    old.state_timestamp_ms = None
    assert bytes.fromhex("ffffffffffffffff") in new_group_record(old)[1]
