"""Any bytes decode to a message or raise MalformedMessage, with memory in proportion to their size."""

import random
import tracemalloc
from typing import Any

import pytest

from barnabas.errors import MalformedMessage
from barnabas.wire.headers import read_request_header
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.group_records import decode_key, decode_value
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.metadata_records import decode_metadata_record

MUTATIONS = 100_000

PARTS = 24
"""The number of parts of slow tests: several workers each have some positions of each message."""

#: Lengths that are too large: as int32, as int16 twice, as compact varints.
LIES = [bytes.fromhex(lie) for lie in ("7fffffff", "40000000", "80000000", "ffffffff07", "ffffffff0f", "ffffff7f")]


def outcome(cls: Any, version: int, data: bytes) -> Any:
    """Returns the result of decoding; raises other errors than MalformedMessage."""
    try:
        return cls.decode(data, version=version)
    except MalformedMessage as error:
        assert str(error).startswith(cls.__name__)
        return None


def test_no_proper_prefix_is_a_message(samples: list[Any]) -> None:
    for cls, version, data in samples:
        for end in range(len(data)):
            assert outcome(cls, version, data[:end]) is None, (
                f"{cls.__name__} v{version} from {end} of {len(data)} bytes"
            )


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Returns ``data`` with one to three mutations."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(6):
            case 0:
                found[at : at + 1] = chance.randbytes(1)
            case 1:
                found[at : at + 1] = bytes((chance.choice((0, 1, 0x7F, 0x80, 0xFF)),))
            case 2:
                del found[at : at + chance.randint(1, 8)]
            case 3:
                found[at:at] = chance.randbytes(chance.randint(1, 8))
            case 4:
                lie = chance.choice(LIES)
                found[at : at + len(lie)] = lie
            case _:
                start = chance.randrange(len(found) + 1)
                found[at:at] = found[start : start + chance.randint(1, 16)]
    return bytes(found)


def test_mutations_give_a_message_or_malformed(samples: list[Any]) -> None:
    chance = random.Random(1883)
    messages = 0
    for number in range(MUTATIONS):
        cls, version, data = samples[number % len(samples)]
        found = outcome(cls, version, mutated(data, chance))
        assert found is None or type(found) is cls
        messages += found is not None
    assert MUTATIONS / 10 < messages < MUTATIONS * 9 / 10, "mutations that all fail, or all pass, test nothing"


def test_what_mutations_give_can_be_written(samples: list[Any]) -> None:
    """Decoded messages can be encoded, and decode to the same again: nothing is decoded partly."""
    chance = random.Random(1924)
    for cls, version, data in samples:
        found = outcome(cls, version, mutated(data, chance))
        if found is not None:
            written = found.encode(version=version)
            assert cls.decode(written, version=version).encode(version=version) == written


@pytest.mark.parametrize(
    "part", [pytest.param(each, marks=[pytest.mark.long] if each % 8 else []) for each in range(PARTS)]
)
def test_lengths_that_lie_cost_no_memory(samples: list[Any], part: int) -> None:
    """For a length of megabytes at every position of every message, memory stays in proportion."""
    newest = [
        (cls, version, data) for cls, version, data in samples if version in (cls.versions.last, cls.flexible.first - 1)
    ]
    for cls, version, data in newest:
        outcome(cls, version, data)
    tracemalloc.start()
    try:
        for cls, version, data in newest:
            for at in range(part, len(data), PARTS):
                for lie in (LIES[0], LIES[3]):
                    lying = data[:at] + lie + data[at + len(lie) :]
                    before, _ = tracemalloc.get_traced_memory()
                    tracemalloc.reset_peak()
                    found = outcome(cls, version, lying)
                    _, peak = tracemalloc.get_traced_memory()
                    del found
                    assert peak - before < 16_384 + 100 * len(lying), f"{cls.__name__} v{version}, {lie.hex()} at {at}"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (4, "ffffffff 000001f4 00000001 00100000 00 7fffffff"),
        (12, "ffffffff 000001f4 00000001 00100000 00 00000000 ffffffff ffffffff07"),
    ],
)
def test_a_count_is_checked_before_anything_is_made(version: int, data: str) -> None:
    with pytest.raises(MalformedMessage, match=r"topics: 214748364[67] elements announced"):
        FetchRequest.decode(bytes.fromhex(data), version=version)


def test_an_error_names_the_field() -> None:
    request = "0001 67 00001770 0000 0008 636f6e73756d6572 00000001 0005 72616e6765 0000"
    with pytest.raises(MalformedMessage) as caught:
        JoinGroupRequest.decode(bytes.fromhex(request), version=0)
    assert str(caught.value) == "JoinGroupRequest v0, protocols.metadata: the bytes end too early"


def test_headers_and_prefixed_records_are_as_careful(samples: list[Any]) -> None:
    chance = random.Random(1926)
    header = bytes.fromhex("0001 000c 00000007 0004 74657374 00")
    key, value = bytes.fromhex("0002 0001 67"), bytes.fromhex("0003 0000 00000001 ffff ffff 0000000000000000 00000000")
    record = bytes.fromhex("01070000000001000000000000000200")
    group_key = decode_key(key)
    assert group_key is not None
    for read, data in (
        (read_request_header, header),
        (decode_key, key),
        (lambda data: decode_value(group_key, data), value),
        (decode_metadata_record, record),
    ):
        read(data)
        for end in range(len(data)):
            with pytest.raises(MalformedMessage):
                read(data[:end])
        for _ in range(2_000):
            try:
                read(mutated(data, chance))
            except MalformedMessage:
                continue
