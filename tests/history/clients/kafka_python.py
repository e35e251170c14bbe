"""kafka-python with the workers' interface. Knows nothing but its library."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.history.clients import base
from tests.history.clients.base import REQUEST_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS, WAIT_S, Given, Lost, Refused, Sent

logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)  # its messages are about intended faults

COMMON: dict[str, Any] = {
    "request_timeout_ms": REQUEST_TIMEOUT_MS,
    "retry_backoff_ms": 20,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 200,
}


class Producer(base.Producer):
    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        self.configs = {
            **COMMON,
            "bootstrap_servers": bootstrap,
            "acks": "all",
            "enable_idempotence": True,
            "linger_ms": 1,
            "delivery_timeout_ms": TRANSACTION_TIMEOUT_MS - 500,
            "max_block_ms": TRANSACTION_TIMEOUT_MS,
        }
        if transactional_id is not None:
            self.configs |= {"transactional_id": transactional_id, "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS}
        self.inner: Any = None

    def start(self) -> None:
        with self._lost():
            self.inner = base.within(WAIT_S, lambda: KafkaProducer(**self.configs))
            if "transactional_id" in self.configs:
                base.within(WAIT_S, self.inner.init_transactions)

    def send(self, key: str, value: bytes) -> Sent:
        topic, partition = base.place(key)
        sent = Sent()
        try:
            future = self.inner.send(topic, value, partition=partition)
        except Exception as error:
            raise Refused(repr(error)) from error
        future.add_callback(lambda metadata: setattr(sent, "offset", metadata.offset if metadata.offset >= 0 else -1))
        future.add_errback(lambda error: setattr(sent, "error", repr(error)))
        return sent

    def flush(self) -> None:
        with self._lost():
            self.inner.flush(WAIT_S)

    def begin(self) -> None:
        with self._lost():
            self.inner.begin_transaction()

    def send_offsets(self, offsets: Mapping[str, int], consumer: base.Consumer) -> None:
        assert isinstance(consumer, Consumer)
        named = {TopicPartition(*base.place(key)): OffsetAndMetadata(offset, "", -1) for key, offset in offsets.items()}
        try:
            base.within(WAIT_S, self.inner.send_offsets_to_transaction, named, consumer.inner.group_metadata())
        except (KafkaError, ValueError, TypeError) as error:
            raise Refused(repr(error)) from error

    def commit(self) -> None:
        with self._lost():
            base.within(WAIT_S, self.inner.commit_transaction)

    def abort(self) -> None:
        with self._lost():
            base.within(WAIT_S, self.inner.abort_transaction)
            # kafka-python 3.0.12 keeps offsets whose commit was refused, and sends them in the next transaction, too,
            # when another member may have committed later ones.
            self.inner._transaction_manager._pending_txn_offset_commits.clear()

    @staticmethod
    @contextlib.contextmanager
    def _lost() -> Iterator[None]:
        """The library does not distinguish between failed operations and those with an unknown outcome."""
        try:
            yield
        except Lost:
            raise
        except Exception as error:
            raise Lost(repr(error)) from error

    def abandon(self) -> None:
        """Its close() would flush first, which fails."""
        if self.inner is not None:
            inner, self.inner = self.inner, None
            inner._unregister_cleanup()
            inner._sender.force_close()
            inner._closed = True


class Moves(base.Moves, ConsumerRebalanceListener):
    """The listener of this library."""


class Consumer(base.Consumer):
    def __init__(self, bootstrap: str, group: str, *, committed: bool) -> None:
        self.group = group
        try:
            self.inner = base.within(
                WAIT_S,
                lambda: KafkaConsumer(
                    **COMMON,
                    bootstrap_servers=bootstrap,
                    group_id=group,
                    isolation_level="read_committed" if committed else "read_uncommitted",
                    enable_auto_commit=False,
                    auto_offset_reset="earliest",
                    session_timeout_ms=6000,
                    heartbeat_interval_ms=500,
                    max_poll_interval_ms=base.MAX_POLL_INTERVAL_MS,
                    fetch_max_wait_ms=50,
                ),
            )
        except KafkaError as error:
            raise Lost(repr(error)) from error

    def assign(self, offsets: Mapping[str, int]) -> None:
        with self._lost():
            self.inner.unsubscribe()
            self.inner.assign([TopicPartition(*base.place(key)) for key in offsets])
            for key, offset in offsets.items():
                place = TopicPartition(*base.place(key))
                if offset == base.BEGINNING:
                    self.inner.seek_to_beginning(place)
                elif offset == base.END:
                    self.inner.seek_to_end(place)
                else:
                    self.inner.seek(place, offset)
        self.moved = True

    def subscribe(self, topics: Iterable[str]) -> None:
        with self._lost():
            self.inner.unsubscribe()
            self.inner.subscribe(list(topics), listener=Moves(self))
        self.moved = True

    def poll(self, count: int, seconds: float) -> list[Given]:
        with self._lost():
            self._join_again()
            polled = base.within(WAIT_S, lambda: self.inner.poll(timeout_ms=int(seconds * 1000), max_records=count))
            return [
                Given(base.key_of(each.topic, each.partition), each.offset, each.value)
                for records in polled.values()
                for each in records
            ]

    def _join_again(self) -> None:
        """Asks for another join if the last one has been forgotten.

        A leader joins again when its metadata changes. kafka-python 3.0.12 forgets such a join if it ends between two
        polls: the consumer has the partitions of the generation before and no heartbeats from then on, and does not
        know it. It would also keep its positions in those that the next generation gives it again, though another
        member may have had them in the forgotten one and have committed offsets: the partitions are given up first, as
        the Java client does before each join of the eager protocol.
        """
        coordinator = self.inner._coordinator
        join = coordinator._join_task
        if join is not None and join.is_done and not coordinator.need_rejoin():
            coordinator._subscription.assign_from_subscribed([])
            coordinator.request_rejoin()

    def assignment(self) -> list[str]:
        return [base.key_of(each.topic, each.partition) for each in self.inner.assignment()]

    def rewind(self) -> None:
        with self._lost():
            for place in self.inner.assignment():
                offset = base.within(WAIT_S, self.inner.committed, place)
                if offset is None:
                    self.inner.seek_to_beginning(place)
                else:
                    self.inner.seek(place, offset)
        self.moved = True

    def commit(self) -> None:
        with contextlib.suppress(Exception):
            base.within(WAIT_S, self.inner.commit)

    _lost = staticmethod(Producer._lost)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            base.within(WAIT_S, self.inner.close)
