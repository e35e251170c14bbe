"""Runs the transaction coordinator against ``__transaction_state``: where its records go, and come back from.

Knows nothing of requests, nor of what the records say.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log import CoordinatorLog, Written
from barnabas.cluster.image import MetadataDelta
from barnabas.cluster.topic_names import TRANSACTION_STATE
from barnabas.errors import KafkaError
from barnabas.offsets.records import Record
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.coordinator import TransactionCoordinator

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FEATURE = "transaction.version"

NO_EPOCH = -1


class TransactionLog:
    """The transaction coordinator of a broker, its log, and the life of both."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._log = CoordinatorLog(broker, TRANSACTION_STATE)
        self.coordinator = TransactionCoordinator(
            TransactionConfig.from_settings(broker.config),
            broker.clock,
            broker.scheduler,
            write=self.write,
            send_markers=broker.marker_sender.send,
            next_producer_id=broker.producer_ids.next,
            coordinator_epoch=self._epoch,
            is_coordinator=self.is_coordinator,
            transaction_version=lambda: broker.image.features.get(FEATURE, 0),
        )

    # -------------------------------------------------------------- the topic

    def create_topic(self, done: Callable[[KafkaError | None], object]) -> None:
        """Creates the topic if there is none, and calls ``done`` when it is there; COORDINATOR_NOT_AVAILABLE if not."""
        self._log.create(done)

    def is_coordinator(self, transactional_id: str) -> bool:
        """Whether what is known of the id, should there be anything, is here: this node leads its partition."""
        return self._log.leads(transactional_id)

    def _epoch(self, transactional_id: str) -> int:
        """How often the partition that keeps the id has changed its leader: the epoch of this coordinator."""
        try:
            return self._log.partition(transactional_id).leader_epoch
        except KafkaError:
            return NO_EPOCH

    # ---------------------------------------------------------------- writing

    def write(self, transactional_id: str, record: Record, written: Written) -> None:
        """Append the record of an id, alone and uncompressed, as all are (``TransactionLog.EnforcedCompression``)."""
        now_ms = self._broker.clock.time_ms()
        self._log.append(transactional_id, build_batch([(*record, now_ms)]), now_ms, written)

    # ---------------------------------------------------- start, follow, stop

    def start(self) -> None:
        """Bring all transactions back from the log; to be called once all partitions are open and groups are loaded."""
        load = self.coordinator.load
        size = self._broker.config["transaction.state.log.load.buffer.size"]
        self._log.load(lambda index, found: load(_records(found)), size)
        self.coordinator.start()

    def stop(self) -> None:
        """No deadline strikes any more."""
        self.coordinator.stop()

    def on_image(self, delta: MetadataDelta) -> None:
        """A topic that was deleted needs no markers any more; with a log go the transactions that it kept."""
        self._log.follow(delta, self.coordinator)


def _records(found: Iterable[RecordBatch]) -> Iterator[Record]:
    for batch in found:
        if not batch.is_control:
            for record in records_of(batch):
                yield record.key or b"", record.value
