"""Declared structures: the values that they accept, decode and refuse."""

import threading
from typing import Any

import pytest

from barnabas.errors import MalformedMessage
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.schema import Struct, Versions, field
from barnabas.wire.types import float64, int8, int16, int32, int64, record_batches, string, uint16, uint32, uuid


class Inner(Struct):
    x: int32
    y: int32 = -1


class Everything(Struct):
    """A field of each kind, so that each is next to each."""

    a: int8
    b: int16
    c: int32
    d: int64
    e: uint16
    f: uint32
    g: float64
    h: bool
    i: uuid
    j: string
    k: bytes
    records: record_batches
    inner: Inner
    maybe: Inner | None
    many: list[Inner]
    numbers: list[int16]
    flags: list[bool]
    ids: list[uuid]
    names: list[string]
    blobs: list[bytes] | None
    tag: int32 = field("1+", tag=0, default=5)
    tagged: Inner = field("1+", tag=1, default_factory=lambda: Inner(x=0))
    maybe_tagged: Inner | None = field("1+", tag=3, default=None)
    many_tagged: list[Inner] | None = field("1+", tag=200, default=())


FULL: dict[str, Any] = {
    "a": -128,
    "b": -2,
    "c": 3,
    "d": -(2**63),
    "e": 65535,
    "f": 2**32 - 1,
    "g": 0.25,
    "h": True,
    "i": bytes(range(16)),
    "j": "grüße " * 40,
    "k": b"\x00\xff" * 100,
    "records": b"records",
    "inner": Inner(x=1),
    "maybe": None,
    "many": [Inner(x=1, y=2), Inner(x=3)],
    "numbers": [1, -1] * 100,
    "flags": [True, False],
    "ids": [bytes(16), bytes(range(16))],
    "names": ["", "a", "ä" * 200],
    "blobs": None,
}


@pytest.mark.parametrize("flexible", [False, True])
def test_everything_comes_back(flexible: bool) -> None:
    full = Everything(**FULL, tag=6, tagged=Inner(x=7), maybe_tagged=Inner(x=9), many_tagged=None)
    data = full.encode(version=1, flexible=flexible)
    found = Everything.decode(data, version=1, flexible=flexible)
    if flexible:
        assert found == full
    assert found.j == full.j
    assert type(found.k) is bytes
    assert type(found.records) is memoryview
    assert found.many == full.many
    assert found.encode(version=1, flexible=flexible) == data


def test_any_buffer_may_be_read() -> None:
    data = Inner(x=1, y=2).encode(version=0)
    for buffer in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        assert Inner.decode(buffer, version=0) == Inner(x=1, y=2)
    assert Inner.decode_from(b"..." + data + b"...", 3, version=0) == (Inner(x=1, y=2), 11)


def test_records_are_a_view_of_the_frame_and_nothing_else_is() -> None:
    frame = bytearray(Everything(**FULL).encode(version=0))
    found = Everything.decode(frame, version=0)
    assert isinstance(found.records, memoryview)
    found.records[:] = b"RECORDS"
    assert b"RECORDS" in frame
    frame[:] = bytes(len(frame))
    assert found.k == FULL["k"]
    assert found.ids == FULL["ids"]


def test_defaults_and_what_has_to_be_given() -> None:
    assert Inner(x=1).y == -1
    with pytest.raises(TypeError, match="'x'"):
        Inner(y=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'z'"):
        Inner(x=1, z=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Inner(1)  # type: ignore[call-arg, misc]


@pytest.mark.parametrize("instance", [1, 2, 3])
def test_the_first_instances_are_checked_like_all_others(instance: int) -> None:
    class Fresh(Struct):
        x: int32
        y: int32 = -1
        names: list[string] = ()  # type: ignore[assignment]

    for number in range(1, instance):
        assert Fresh(x=number) == Fresh(x=number, y=-1, names=[])
    with pytest.raises(TypeError, match="'x'"):
        Fresh(y=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'z'"):
        Fresh(x=1, z=1)  # type: ignore[call-arg]
    fresh = Fresh(x=7, names=["a"])
    assert (fresh.x, fresh.y, fresh.names) == (7, -1, ["a"])


def test_a_field_that_the_version_lacks_reads_as_its_default_and_is_not_written() -> None:
    request = OffsetFetchRequest(group_id="g", topics=None, require_stable=True)
    assert OffsetFetchRequest.decode(request.encode(version=2), version=2).require_stable is False
    assert OffsetFetchRequest.decode(request.encode(version=7), version=7).require_stable is True
    assert list(OffsetFetchRequest.decode(request.encode(version=7), version=7).groups) == []


def test_a_tagged_default_is_left_off() -> None:
    partition = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
    plain = partition(index=0, base_offset=1)
    same = partition(index=0, base_offset=1, current_leader=partition.LeaderIdAndEpoch())
    other = partition(index=0, base_offset=1, current_leader=partition.LeaderIdAndEpoch(leader_id=2))
    lengths = [len(each.encode(version=10, flexible=True)) for each in (plain, same, other)]
    assert lengths == [lengths[0], lengths[0], lengths[0] + 2 + 9]


def test_null_is_allowed_only_in_some_versions() -> None:
    everything = MetadataRequest(topics=None)
    assert MetadataRequest.decode(everything.encode(version=1), version=1).topics is None
    with pytest.raises(TypeError):
        everything.encode(version=0)
    with pytest.raises(MalformedMessage, match="topics: null"):
        MetadataRequest.decode(bytes.fromhex("ffffffff"), version=0)
    with pytest.raises(MalformedMessage, match=r"topics\.name: null"):
        MetadataRequest.decode(bytes.fromhex("02 00 01 00 00 00"), version=9)


def test_arrays_may_be_any_sequence() -> None:
    topic = MetadataRequest.MetadataRequestTopic
    assert MetadataRequest(topics=(topic(name="a"),)) == MetadataRequest(topics=[topic(name="a")])  # type: ignore[arg-type]
    with_tuple = MetadataRequest(topics=(topic(name="a"),)).encode(version=1)  # type: ignore[arg-type]
    assert with_tuple == MetadataRequest(topics=[topic(name="a")]).encode(version=1)


def test_structures_compare_by_their_fields_and_show_them() -> None:
    assert Inner(x=1) != Inner(x=2)
    assert Inner(x=1) != "x"
    assert repr(Everything(**{**FULL, "records": memoryview(b"12345")})).count("records=<5 bytes>") == 1
    assert repr(Inner(x=1)) == "Inner(x=1)"
    with pytest.raises(TypeError):
        hash(Inner(x=1))


@pytest.mark.parametrize("text", ["0+", "3+", "0-12", "7", "none"])
def test_versions_print_as_they_are_written(text: str) -> None:
    assert str(Versions.parse(text)) == text


def test_versions_contain() -> None:
    assert [version for version in range(6) if version in Versions.parse("2-4")] == [2, 3, 4]
    assert not any(version in Versions.parse("none") for version in (-1, 0, 32767))


def test_first_use_from_many_threads_at_once() -> None:
    """Defaults are set on first use, in one step for all threads."""

    class Fresh(Struct):
        x: int32
        late: string | None = field("2+", default=None)
        inner: Inner = field("2+", default_factory=lambda: Inner(x=4))

    found: list[Any] = []
    gate = threading.Barrier(8)

    def first_use() -> None:
        gate.wait()
        found.append(Fresh.decode(Fresh(x=1).encode(version=1), version=1))

    threads = [threading.Thread(target=first_use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(each.x, each.late, each.inner) for each in found] == [(1, None, Inner(x=4))] * 8
