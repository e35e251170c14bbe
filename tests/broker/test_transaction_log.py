"""The transaction coordinator over its log: the partitions of records, and the state after a restart."""

import pytest

from barnabas.broker import Broker
from barnabas.clock import ManualClock
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.topic_names import TRANSACTION_STATE
from barnabas.config import BrokerConfig
from barnabas.errors import (
    InvalidTxnState,
    KafkaError,
    KafkaStorageError,
    NotCoordinator,
    NotEnoughReplicas,
    UnknownServerError,
)
from barnabas.log.files import MemoryFiles
from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_record_type
from barnabas.records.record import records_of
from barnabas.transactions.messages import EndResult, InitProducer, InitResult, ProducerIdentity, TopicPartition
from barnabas.wire.messages.transaction_records import decode_key, decode_value
from tests.broker.opening import opened
from tests.submitting import create_topic, ready, reset_to_start, submitted

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Life:
    """A broker in memory with its restarts, and one producer of the second generation."""

    broker: Broker

    def __init__(self, **properties: str) -> None:
        self.properties = {
            "node.id": "1",
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        } | properties
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        self.start()
        create_topic(self.broker, "t", 2, {})
        self.broker.coordinators.transactions.create_topic(ready)

    def start(self) -> None:
        self.broker = opened(BrokerConfig.from_properties(self.properties), self.files, self.clock)

    def restart(self) -> None:
        self.broker.close()
        self.start()

    def init(self, transactional_id: str = "x") -> InitResult:
        results: list[InitResult] = []
        self.broker.transactions.init_producer_id(InitProducer(transactional_id, 60_000), results.append)
        (result,) = results
        return result

    def add(self, producer: InitResult, *partitions: TopicPartition) -> KafkaError | None:
        results: list[KafkaError | None] = []
        identity = ProducerIdentity("x", producer.producer_id, producer.producer_epoch)
        self.broker.transactions.add_partitions(identity, partitions, results.append, client_version=2)
        (result,) = results
        return result

    def end(self, producer: InitResult | EndResult, *, is_commit: bool = True) -> EndResult:
        results: list[EndResult] = []
        identity = ProducerIdentity("x", producer.producer_id, producer.producer_epoch)
        self.broker.transactions.end(identity, is_commit, results.append, client_version=2)
        (result,) = results
        return result

    def write(self, producer: InitResult, partition: int = 0) -> None:
        batch = build_batch(
            [(None, b"v", self.clock.time_ms())],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        self.broker.partition("t", partition).append(RecordBatch.parse(batch), self.clock.time_ms())

    def records(self, index: int) -> list[tuple[str | None, int | None]]:
        """Returns transactional ids and states of a partition."""
        found = []
        for batch in self.batches(TRANSACTION_STATE, index):
            for record in records_of(batch):
                state = None if record.value is None else decode_value(record.value).transaction_status
                found.append((decode_key(record.key or b""), state))
        return found

    def batches(self, topic: str, index: int) -> list[RecordBatch]:
        log = self.broker.partition(topic, index).log
        data = log.read(log.log_start_offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True)
        return list(batches(data))


X = 20  #: the partition of "x": 120 % 50, by Java's hash


@pytest.fixture
def life() -> Life:
    return Life()


def test_an_id_is_kept_in_the_partition_of_its_hash(life: Life) -> None:
    life.init()
    (batch,) = life.batches(TRANSACTION_STATE, X)
    (record,) = records_of(batch)
    assert record.timestamp == life.clock.time_ms()
    assert (batch.producer_id, batch.base_sequence, batch.compression) == (-1, -1, Compression.NONE)
    assert life.records(X) == [("x", EMPTY)]


def test_a_transaction_from_its_beginning_to_its_end(life: Life) -> None:
    producer = life.init()
    assert life.add(producer, T0, T1) is None
    life.write(producer)
    assert life.end(producer).error is None
    assert [state for _, state in life.records(X)] == [EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT]
    for index in (0, 1):
        marker = life.batches("t", index)[-1]
        (record,) = records_of(marker)
        assert marker.is_control
        assert control_record_type(record.key) is ControlRecordType.COMMIT
    assert life.broker.partition("t", 0).log.last_stable_offset == 2


def test_a_restart_keeps_what_is_open(life: Life) -> None:
    producer = life.init()
    life.add(producer, T0)
    life.write(producer)
    life.restart()
    described = life.broker.transactions.describe("x")
    assert (described.state, described.producer_id, list(described.partitions)) == (
        "Ongoing",
        producer.producer_id,
        [T0],
    )
    ended = life.end(producer)
    assert (ended.error, ended.producer_epoch) == (None, producer.producer_epoch + 1)
    assert life.broker.partition("t", 0).log.last_stable_offset == 2


@pytest.mark.parametrize("is_commit", [True, False])
def test_what_was_decided_is_carried_out_at_the_next_start(
    life: Life, monkeypatch: pytest.MonkeyPatch, is_commit: bool
) -> None:
    producer = life.init()
    life.add(producer, T0)
    life.write(producer)

    def fail(*_: object, **__: object) -> None:
        raise NotEnoughReplicas

    partition = life.broker.partition("t", 0)
    with monkeypatch.context() as patch:
        patch.setattr(type(partition.log), "append_as_leader", fail_for(partition.log, fail))
        life.end(producer, is_commit=is_commit)
        assert [state for _, state in life.records(X)][-1] == (PREPARE_COMMIT if is_commit else PREPARE_ABORT)
        assert partition.log.last_stable_offset == 0
        life.restart()
    assert [state for _, state in life.records(X)][-1] == (COMPLETE_COMMIT if is_commit else COMPLETE_ABORT)
    assert life.broker.partition("t", 0).log.last_stable_offset == 2


def fail_for(doomed, fail):
    """Returns an ``append_as_leader`` that fails for one log."""
    genuine = type(doomed).append_as_leader

    def append(log, *arguments, **options):
        return fail() if log is doomed else genuine(log, *arguments, **options)

    return append


def test_a_transaction_runs_out_of_time_over_a_restart(life: Life) -> None:
    producer = life.init()
    life.add(producer, T0)
    life.write(producer)
    life.restart()
    life.clock.advance(80)
    assert life.broker.transactions.describe("x").state == "CompleteAbort"
    assert life.broker.partition("t", 0).log.last_stable_offset == 2
    assert life.end(producer).error is not None


def test_without_its_topic_nobody_is_the_coordinator(life: Life) -> None:
    producer = life.init()
    submitted(life.broker.controller, DeleteTopics([(TRANSACTION_STATE, bytes(16))]))
    assert isinstance(life.add(producer, T0), NotCoordinator)
    assert isinstance(life.init().error, NotCoordinator)
    life.broker.coordinators.transactions.create_topic(ready)
    assert life.init().error is None


def test_without_its_disk_nobody_is_the_coordinator(life: Life) -> None:
    """Even before the metadata is changed, or if it cannot record it."""
    assert life.broker.coordinators.transactions.leads("x")
    life.broker.partition(TRANSACTION_STATE, X).log.go_offline("on fire")
    assert not life.broker.coordinators.transactions.leads("x")
    assert isinstance(life.init().error, NotCoordinator)


def test_a_deleted_topic_needs_no_marker(life: Life) -> None:
    producer = life.init()
    life.add(producer, T0)
    submitted(life.broker.controller, DeleteTopics([("t", bytes(16))]))
    assert life.end(producer).error is None
    life.clock.advance(1)
    assert life.broker.transactions.describe("x").state == "CompleteCommit"


def test_a_partition_whose_disk_has_failed_gets_its_marker_when_it_is_back(life: Life) -> None:
    producer = life.init()
    life.add(producer, T0, T1)
    life.write(producer)
    life.write(producer, 1)
    life.broker.partition("t", 0).log.go_offline("on fire")
    assert life.end(producer).error is None
    life.clock.advance(60)
    described = life.broker.transactions.describe("x")
    assert (described.state, list(described.partitions)) == ("PrepareCommit", [T0])
    assert life.broker.partition("t", 1).log.last_stable_offset == 2
    life.restart()
    assert life.broker.transactions.describe("x").state == "CompleteCommit"
    assert life.broker.partition("t", 0).log.last_stable_offset == 2


def test_when_its_topic_is_deleted_nobody_waits_for_the_disk(life: Life) -> None:
    producer = life.init()
    life.add(producer, T0)
    life.broker.partition("t", 0).log.go_offline("on fire")
    life.end(producer)
    submitted(life.broker.controller, DeleteTopics([("t", bytes(16))]))
    assert life.broker.transactions.describe("x").state == "CompleteCommit"


def test_an_id_that_no_record_has_a_place_for_leaves_nothing_behind(life: Life) -> None:
    assert isinstance(life.init("é" * (1 << 14)).error, UnknownServerError)
    assert not life.broker.transactions.list_transactions().transactions
    assert life.init("é" * ((1 << 14) - 1)).error is None


@pytest.mark.parametrize(("error", "expected"), [(KafkaStorageError, NotCoordinator)])
def test_an_error_of_the_log_is_returned_as_a_coordinators(
    life: Life, monkeypatch: pytest.MonkeyPatch, error: type[KafkaError], expected: type[KafkaError]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(type(life.broker.partition(TRANSACTION_STATE, X)), "append", fail)
    assert isinstance(life.init().error, expected)


def test_a_reset_forgets_transactions(life: Life) -> None:
    producer = life.init()
    reset_to_start(life.broker)
    life.broker.coordinators.transactions.create_topic(ready)
    with pytest.raises(KafkaError):
        life.broker.transactions.describe("x")
    assert life.add(producer, T0) is not None


def test_the_partition_of_an_id_is_known_before_the_topic() -> None:
    life = Life(**{"transaction.state.log.num.partitions": "7"})
    submitted(life.broker.controller, DeleteTopics([(TRANSACTION_STATE, bytes(16))]))
    life.init()
    life.broker.coordinators.transactions.create_topic(ready)
    life.init()
    assert life.records(120 % 7) == [("x", EMPTY)]


def test_an_end_without_a_beginning(life: Life) -> None:
    producer = life.init()
    assert isinstance(life.end(producer).error, InvalidTxnState)
