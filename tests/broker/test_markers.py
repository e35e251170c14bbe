"""Markers: their bytes, the partitions that accept them, and when they are acknowledged."""

import pytest

from barnabas.broker.markers import end_marker, write_markers
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.errors import (
    InvalidProducerEpoch,
    KafkaStorageError,
    TransactionCoordinatorFenced,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.log.files import MemoryFiles
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_record_type
from barnabas.records.record import records_of
from barnabas.transactions.messages import Marker, TopicPartition
from tests.broker.opening import opened
from tests.held import Held
from tests.kinds import kind
from tests.submitting import create_topic

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
MISSING = TopicPartition("nobody", 0)

APACHE = {
    "commit": (
        Marker(0, 3, 0, True, 1), 1_795_294_761_821, 1,
        "000000000000000100000042000000000 2bf41272f0030 00000000 000001a1ffe8135d 000001a1ffe8135d 0000000000000000"
        "0003 ffffffff 00000001 20 00 00 00 08 00000001 0c 000000000000 00",
    ),
    "abort": (
        Marker(77, 0, 1, False, 0), 1_795_294_580_772, 1,
        "000000000000000100000042000000000 27d78da3e0030 00000000 000001a1ffe55024 000001a1ffe55024 000000000000004d"
        "0000 ffffffff 00000001 20 00 00 00 08 00000000 0c 000000000001 00",
    ),
    "of no coordinator": (
        Marker(80, 0, -1, True, 0), 1_795_294_580_843, 5,
        "000000000000000500000042000000000 280f9a7e40030 00000000 000001a1ffe5506b 000001a1ffe5506b 0000000000000050"
        "0000 ffffffff 00000001 20 00 00 00 08 00000001 0c 0000ffffffff 00",
    ),
}  # fmt: skip
"""Marker, time, offset, and the batch of Apache Kafka 4.3.1."""


@pytest.mark.parametrize("what", APACHE)
def test_the_bytes_are_apaches(what: str) -> None:
    marker, now_ms, offset, written = APACHE[what]
    batch = end_marker(marker, now_ms)
    batch.stamp(offset, 0)
    assert bytes(batch.buffer) == bytes.fromhex(written.replace(" ", ""))


class Node:
    """A broker with a topic of three partitions."""

    def __init__(self, **configs: str) -> None:
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        properties = {"node.id": "1", "log.dirs": "/data", "listeners": "PLAINTEXT://127.0.0.1:9092"}
        self.broker = opened(BrokerConfig.from_properties(properties), self.files, self.clock)
        create_topic(self.broker, "t", 3, {name.replace("_", "."): value for name, value in configs.items()})

    def append(self, place: TopicPartition, *, epoch: int = 0, sequence: int = 0, producer_id: int = 7) -> None:
        batch = build_batch(
            [(None, b"v", self.clock.time_ms())],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        self.broker.partition(*place).append(RecordBatch.parse(batch), self.clock.time_ms())

    def write(self, marker: Marker, *places: TopicPartition):
        """Returns the immediate result of each partition."""
        results = []
        write_markers(self.broker, marker, places, results.append)
        (errors,) = results
        return list(map(kind, errors.values()))

    def batches(self, place: TopicPartition) -> list[RecordBatch]:
        log = self.broker.partition(*place).log
        return list(batches(log.read(0, 1 << 20, up_to=log.log_end_offset, minimum_one=True)))


@pytest.fixture
def node() -> Node:
    return Node()


def commit(epoch: int = 0, *, coordinator_epoch: int = 0, version: int = 0, producer_id: int = 7) -> Marker:
    return Marker(producer_id, epoch, coordinator_epoch, True, version)


def test_each_partition_gets_its_own_offset(node):
    node.append(T0)
    node.append(T2)
    node.append(T2, sequence=1)
    assert node.write(commit(), T0, T1, T2) == [None, None, None]
    ends = [node.batches(place)[-1] for place in (T0, T1, T2)]
    assert [end.base_offset for end in ends] == [1, 0, 2]
    for end in ends:
        end.check_crc()
        (record,) = records_of(end)
        assert control_record_type(record.key) is ControlRecordType.COMMIT
    assert [node.broker.partition(*place).log.last_stable_offset for place in (T0, T1, T2)] == [2, 1, 3]


def test_what_is_not_there_takes_nothing(node):
    assert node.write(commit(), T0, MISSING, TopicPartition("t", 3)) == [
        None,
        UnknownTopicOrPartition,
        UnknownTopicOrPartition,
    ]


def test_a_failed_disk_takes_nothing(node):
    node.broker.partition(*T1).log.go_offline("on fire")
    assert node.write(commit(), T0, T1) == [None, UnknownTopicOrPartition]


def test_a_former_coordinator_is_fenced(node):
    node.write(commit(coordinator_epoch=3), T0)
    assert node.write(commit(coordinator_epoch=2), T0, T1) == [TransactionCoordinatorFenced, None]
    assert node.write(commit(coordinator_epoch=3), T0) == [None]


def test_an_older_producer_is_fenced(node):
    node.append(T0, epoch=4)
    assert node.write(commit(3), T0) == [InvalidProducerEpoch]
    assert node.broker.partition(*T0).log.producers.is_ongoing(7, 4)
    assert node.write(commit(4), T0) == [None]


def test_it_has_to_say_which_generation_it_is_of(node):
    assert node.write(commit(version=-1), T0) == [UnknownServerError]
    assert node.write(commit(version=-1, producer_id=-5), T0) == [
        None
    ]  # of no producer, which Apache Kafka accepts, too


class TestTheSecondGeneration:
    """``transaction.version`` 2: the epoch increases with each end, which distinguishes it from a later one."""

    def test_a_marker_is_above_its_records(self, node):
        node.append(T0, epoch=4)
        assert node.write(commit(4, version=2), T0) == [InvalidProducerEpoch]
        assert node.write(commit(5, version=2), T0) == [None]
        assert not node.broker.partition(*T0).log.producers.transactions.open

    def test_once_more_ends_nothing_and_is_taken(self, node):
        node.append(T0, epoch=4)
        assert [node.write(commit(5, version=2), T0) for _ in range(3)] == [[None]] * 3
        assert node.broker.partition(*T0).log.log_end_offset == 4

    def test_a_late_one_never_ends_a_later_transaction(self, node):
        node.append(T0, epoch=4)
        node.write(commit(5, version=2), T0)
        node.append(T0, epoch=5)
        assert node.write(commit(5, version=2), T0) == [InvalidProducerEpoch]
        assert node.write(commit(4, version=2), T0) == [InvalidProducerEpoch]
        assert node.broker.partition(*T0).log.producers.is_ongoing(7, 5)
        assert node.write(commit(6, version=2), T0) == [None]

    def test_a_late_one_of_the_first_generation_cannot_be_recognized(self, node):
        node.append(T0, epoch=4)
        assert node.write(commit(4, version=1), T0) == [None]

    def test_sequences_begin_anew_after_it(self, node):
        node.append(T0, epoch=4)
        node.append(T0, epoch=4, sequence=1)
        node.write(commit(5, version=2), T0)
        node.append(T0, epoch=5)
        assert node.broker.partition(*T0).log.producers.entries[7].last_sequence == 0


def test_the_logs_time():
    node = Node(message_timestamp_type="LogAppendTime")
    node.clock.advance(5)
    assert node.write(commit(), T0, T1) == [None, None]
    for place in (T0, T1):
        (batch,) = node.batches(place)
        batch.check_crc()
        assert batch.is_log_append_time
        assert batch.max_timestamp == node.clock.time_ms()


@pytest.mark.parametrize("failing", [None, OSError(5, "Input/output error")])
def test_it_is_said_to_be_there_when_the_disk_has_it(failing):
    node = Node(flush_messages="1")
    node.broker.log_manager.housekeeping._background = held = Held()
    results = []
    write_markers(
        node.broker,
        commit(),
        [T0, MISSING, T1],
        lambda errors: results.append({each: kind(error) for each, error in errors.items()}),
    )
    assert results == []
    held.go_on(failing)
    expected = None if failing is None else KafkaStorageError
    assert results == [{T0: expected, MISSING: UnknownTopicOrPartition, T1: expected}]
