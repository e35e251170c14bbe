"""Records of transactional ids: their format in Apache Kafka, and the state after loading."""

import logging

import pytest

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import MalformedMessage
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.listing import Filter
from barnabas.transactions.messages import TopicPartition
from barnabas.transactions.records import facts_of, record_of, tombstone
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.states import State
from barnabas.transactions.transaction import Facts

PARTITIONS = dict.fromkeys([TopicPartition("x", 2), TopicPartition("y", 0), TopicPartition("x", 1)])
OPEN = Facts(State.ONGOING, 1000, 3, 60_000, PARTITIONS, 1_700_000_000_000, 1_700_000_000_005, 1000, client_version=2)
KEY = bytes.fromhex("0000000174")

OLD_VALUE = bytes.fromhex(
    "0000" "00000000000003e8" "0003" "0000ea60" "01"  # version, producer id and epoch, time-out, status
    "00000002" "0001" "78" "00000002" "00000002" "00000001" "0001" "79" "00000001" "00000000"  # partitions
    "0000018bcfe56805" "0000018bcfe56800"  # last update, start
)  # fmt: skip
VALUE = bytes.fromhex(
    "0001" "00000000000003e8" "0003" "0000ea60" "01"
    "03" "02" "78" "03" "00000002" "00000001" "00" "02" "79" "02" "00000000" "00" "0000018bcfe56805" "0000018bcfe56800"
    "02" "00" "08" "00000000000003e8" "02" "02" "0002"  # tags: previous producer id, the client's generation
)  # fmt: skip

EVERYTHING = Filter((), (), -1, None, 0)


def loaded(records):
    """Returns a shard that has loaded these records."""
    clock = ManualClock()
    shard = TransactionShard(
        TransactionConfig(),
        clock,
        Deadlines(clock, clock),
        write=lambda *arguments: None,
        send_markers=lambda *arguments: None,
        next_producer_id=lambda: 1000,
    )
    for offset, (key, value) in enumerate(records):
        shard.replay(offset, -1, key, value)
    shard.loaded()
    return shard


@pytest.mark.parametrize(("level", "value"), [(0, OLD_VALUE), (1, VALUE), (2, VALUE)])
def test_a_record_is_of_the_version_of_the_feature_level(level, value):
    assert record_of("t", OPEN, level) == (KEY, value)


def test_a_record_is_read_as_it_was_written_but_for_the_order_of_topics():
    assert facts_of(VALUE) == OPEN
    assert facts_of(OLD_VALUE) == OPEN._replace(previous_producer_id=-1, client_version=0)


def test_an_empty_one_has_no_list_of_partitions():
    empty = Facts(State.EMPTY, 1, 0, 60_000)
    _, value = record_of("t", empty, 0)
    assert value.hex() == "0000" + "0000000000000001" + "0000" + "0000ea60" + "00" + "ffffffff" + "f" * 32
    assert facts_of(value) == empty


def test_only_the_last_record_of_an_id_counts():
    other = OPEN._replace(producer_id=1001)
    records = [
        record_of("t", Facts(State.EMPTY, 1000, 0, 60_000), 2),
        record_of("u", other, 2),
        record_of("gone", OPEN, 2),
        record_of("t", OPEN, 2),
        tombstone("gone"),
    ]
    shard = loaded(records)
    assert shard.describe("t").producer_id == OPEN.producer_id
    assert [each.transactional_id for each in shard.list_transactions(EVERYTHING)] == ["t", "u"]


def test_what_a_newer_broker_wrote_is_passed_over(caplog):
    caplog.set_level(logging.WARNING)
    newer_key, newer_value = b"\0\1" + KEY[2:], b"\0\2" + VALUE[2:]
    records = [(KEY, VALUE), (newer_key, VALUE), (KEY, newer_value), (KEY, newer_value)]
    assert [each.transactional_id for each in loaded(records).list_transactions(EVERYTHING)] == ["t"]
    assert "2 records" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\0", VALUE), (KEY[:-1], VALUE), (KEY, VALUE[:20]), (KEY, OLD_VALUE[:16] + b"\x09" + OLD_VALUE[17:])],
    ids=["no type", "torn key", "torn value", "no such state"],
)
def test_what_is_no_record_is_told(key, value):
    with pytest.raises(MalformedMessage):
        loaded([(key, value)])
