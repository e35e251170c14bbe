"""The transaction index: Kafka's bytes, the transactions that a reader meets, and invalid files."""

import pytest
from construct import Const, GreedyRange, Int16sb, Int64sb, Struct

from barnabas.errors import CorruptMessage
from barnabas.log.offset_index import CorruptIndex
from barnabas.log.transaction_index import (
    ENTRY_SIZE,
    AbortedTransaction,
    TransactionIndex,
    decode_transactions,
    encode_transactions,
)
from barnabas.testing.faults import FaultyFiles

LAYOUT = GreedyRange(
    Struct(
        "version" / Const(0, Int16sb),
        "producer_id" / Int64sb,
        "first_offset" / Int64sb,
        "last_offset" / Int64sb,
        "last_stable_offset" / Int64sb,
    )
)

THREE = [
    AbortedTransaction(7, 100, 110, 105),  # another transaction was open since 105
    AbortedTransaction(8, 105, 120, 121),
    AbortedTransaction(7, 130, 140, 141),
]
NAME = f"{100:020d}.txnindex"


@pytest.fixture
def index(place):
    return TransactionIndex(place.files, f"{place.path}/{NAME}", 100)


def file_of(place):
    path = f"{place.path}/{NAME}"
    return place.files.read(path) if place.files.exists(path) else None


def test_the_file_of_apache_kafka(golden):
    data = golden.files.read(golden.path(f"{185:020d}.txnindex"))
    entries = decode_transactions(data, 185)
    assert entries == [AbortedTransaction(2, 180, 185, 186), AbortedTransaction(2, 192, 197, 198)]
    assert encode_transactions(entries) == data


def test_the_bytes_read_by_construct():
    data = encode_transactions(THREE)
    assert len(data) == 3 * ENTRY_SIZE == 3 * 34
    read = [
        AbortedTransaction(each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
        for each in LAYOUT.parse(data)
    ]
    assert read == THREE


def test_without_aborted_transactions_there_is_no_file(place, index):
    assert index.entries == []
    index.truncate(0)
    assert file_of(place) is None


def test_appended_entries_are_in_the_file(place, index):
    for count, entry in enumerate(THREE, 1):
        index.append(entry)
        assert file_of(place) == encode_transactions(THREE[:count])
    index.forget()
    assert index.entries == THREE


def test_appending_to_an_existing_file(place, index):
    index.append(THREE[0])
    again = TransactionIndex(place.files, index.path, 100)
    again.append(THREE[1])
    assert file_of(place) == encode_transactions(THREE[:2])


@pytest.mark.parametrize(
    ("offset", "up_to", "slots", "is_all"),
    [
        (100, 101, [0], True),
        (100, 105, [0], True),
        (100, 106, [0, 1], True),
        (111, 112, [1], True),
        (111, 122, [1], True),
        (110, 111, [0, 1], True),
        (121, 131, [2], True),
        (121, 130, [], True),
        (141, 150, [], False),
        (100, 142, [0, 1, 2], False),
        (0, 100, [], True),
    ],
)
def test_the_transactions_that_a_reader_meets(index, offset, up_to, slots, is_all):
    for entry in THREE:
        index.append(entry)
    found = []
    assert index.collect(offset, up_to, found) == is_all
    assert found == [THREE[slot] for slot in slots]


@pytest.mark.parametrize(("offset", "kept"), [(141, 3), (140, 2), (121, 2), (120, 1), (110, 0), (0, 0)])
def test_truncation(place, index, offset, kept):
    index.replace(THREE)
    index.truncate(offset)
    assert index.entries == THREE[:kept]
    assert file_of(place) == (encode_transactions(THREE[:kept]) if kept else None)


@pytest.mark.parametrize(
    "damage",
    [
        encode_transactions(THREE)[:-1],
        b"\0\1" + encode_transactions(THREE)[2:],
        encode_transactions(THREE[::-1]),
        encode_transactions([THREE[0], THREE[0]]),
        encode_transactions([AbortedTransaction(7, 90, 99, 100)]),
        encode_transactions([AbortedTransaction(7, 111, 110, 110)]),
    ],
)
def test_an_invalid_file_is_refused(memory, damage):
    with pytest.raises(CorruptIndex):
        decode_transactions(damage, 100)
    index = TransactionIndex(memory.files, f"{memory.path}/{NAME}", 100)
    memory.files.create(index.path).write(damage)
    with pytest.raises(CorruptMessage, match="txnindex"):
        index.collect(0, 1000, [])


@pytest.mark.parametrize("torn", [0, 1, 33])
def test_a_failed_write_is_cut_back(torn):
    for fail_at in range(3, 8):
        files = FaultyFiles(fail_at, torn=torn, lasting="once")
        files.makedirs("/data")
        index = TransactionIndex(files, f"/data/{NAME}", 100)
        written = 0
        try:
            for entry in THREE:
                index.append(entry)
                written += 1
        except OSError:
            assert files.has_failed
            assert index.entries == THREE[:written]
            if written:
                assert decode_transactions(files.read(index.path), 100) == THREE[:written]
