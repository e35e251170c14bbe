"""confluent-kafka (librdkafka) with the workers' interface. Knows nothing but its library."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from tests.history.clients import base
from tests.history.clients.base import REQUEST_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS, WAIT_S, Given, Lost, Refused, Sent

SILENT = logging.getLogger("tests.history.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False

COMMON = {
    "retry.backoff.ms": 20,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "socket.timeout.ms": REQUEST_TIMEOUT_MS,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
STEP_S = 2.0


@contextlib.contextmanager
def lost() -> Iterator[None]:
    """Raises `Lost` for errors after which the client cannot continue.

    The library sets the exception of a fatal error and calls back afterwards, which Python 3.12 and later refuse with a
    SystemError.
    """
    try:
        yield
    except (KafkaException, RuntimeError, SystemError, TypeError) as error:
        raise Lost(str(error)) from error


class Producer(base.Producer):
    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        configs = {
            **COMMON,
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 1,
            "message.timeout.ms": TRANSACTION_TIMEOUT_MS - 500,
        }
        if transactional_id is not None:
            configs |= {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        self.is_transactional = transactional_id is not None
        self.sent: list[Sent] = []
        """The records since the transaction began."""
        self.inner = confluent_kafka.Producer(configs, logger=SILENT)

    def start(self) -> None:
        if self.is_transactional:
            self._again(self.inner.init_transactions)

    def send(self, key: str, value: bytes) -> Sent:
        sent = Sent()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                sent.offset = message.offset() if message.offset() is not None and message.offset() >= 0 else -1
            else:
                sent.error = error.name()

        topic, partition = base.place(key)
        try:
            self.inner.produce(topic, value, partition=partition, on_delivery=delivered)
        except (KafkaException, BufferError) as error:
            sent.error = str(error)
            raise Refused(sent.error) from error
        if self.is_transactional:
            self.sent.append(sent)
        with lost():
            self.inner.poll(0)
        return sent

    def flush(self) -> None:
        with lost():
            left = self.inner.flush(WAIT_S)
        if left:
            raise Lost("records are still on their way")

    def begin(self) -> None:
        self.sent.clear()
        with lost():
            self.inner.begin_transaction()

    def send_offsets(self, offsets: Mapping[str, int], consumer: base.Consumer) -> None:
        assert isinstance(consumer, Consumer)
        places = [TopicPartition(*base.place(key), offset) for key, offset in offsets.items()]
        try:
            group = consumer.inner.consumer_group_metadata()
        except KafkaException as error:
            raise Refused(str(error)) from error
        call = self.inner.send_offsets_to_transaction
        # librdkafka 2.16 may lose its request, and the time-out, when the coordinator stops
        base.within(WAIT_S / 2, self._again, lambda seconds: call(places, group, seconds))

    def commit(self) -> None:
        self._again(self.inner.commit_transaction)

    def abort(self) -> None:
        """Aborts the transaction; raises `Lost` if a record of it was not acknowledged.

        librdkafka 2.16 drops such records from its queue, and gives their sequence numbers to the next ones. If it had
        sent them and lost the connection, the partition has them: brokers take the next ones for retries, and
        acknowledge them without appending them. Another producer gets another epoch.
        """
        self._again(self.inner.abort_transaction)
        if not all(each.is_acknowledged for each in self.sent):
            raise Lost("records of an aborted transaction were not acknowledged")

    @staticmethod
    def _again(call: Callable[[float], object]) -> None:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                call(STEP_S)
                return
            except KafkaException as error:
                reason = error.args[0]
                if reason.txn_requires_abort():
                    raise Refused(str(reason)) from error
                if not reason.retriable() or time.monotonic() > deadline:
                    raise Lost(str(reason)) from error
                time.sleep(0.02)

    def abandon(self) -> None:
        with contextlib.suppress(KafkaException):
            self.inner.purge()
        del self.inner


class Consumer(base.Consumer):
    membership: ClassVar[dict[str, str | int]] = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}

    def __init__(self, bootstrap: str, group: str, *, committed: bool) -> None:
        self.group = group
        self.inner = confluent_kafka.Consumer(
            {
                **COMMON,
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **self.membership,
                "max.poll.interval.ms": base.MAX_POLL_INTERVAL_MS,
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 20,
                "enable.partition.eof": True,
            },
            logger=SILENT,
        )
        self.assigned = False
        self.ends: set[str] = set()
        """The partitions whose end was reached."""

    def assign(self, offsets: Mapping[str, int]) -> None:
        """Assigns the partitions; the end is looked up first.

        If librdkafka 2.16 has to find the end of an assigned partition and the leader refuses, it asks again half a
        second later, and goes there even if the partition has been assigned at another offset since: it skips records.
        """
        places = {key: self.bounds(key)[1] if offset == base.END else offset for key, offset in offsets.items()}
        with lost():
            self.inner.assign([TopicPartition(*base.place(key), offset) for key, offset in places.items()])
        self.assigned = True
        self._have_moved()

    def subscribe(self, topics: Iterable[str]) -> None:
        moved = self._have_moved
        with lost():
            self.inner.subscribe(list(topics), on_assign=moved, on_revoke=moved, on_lost=moved)
        self.assigned = False
        self._have_moved()

    def _have_moved(self, *_: object) -> None:
        self.moved = True
        self.ends.clear()

    def poll(self, count: int, seconds: float) -> list[Given]:
        given: list[Given] = []
        messages: list[Message] = []
        with lost():
            # One by one: librdkafka's calls for batches are known to lose messages around an assign or a seek.
            while len(messages) < count and (message := self.inner.poll(0 if messages else seconds)) is not None:
                messages.append(message)
        for message in messages:
            key = base.key_of(message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                self.ends.discard(key)
                given.append(Given(key, message.offset(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                self.ends.add(key)
            else:
                self.complaint = f"{key}:{message.offset()}: {error.name()}"
        return given

    def assignment(self) -> list[str]:
        return [base.key_of(each.topic, each.partition) for each in self.inner.assignment()]

    def rewind(self) -> None:
        with lost():
            places = []
            for each in self.inner.committed(self.inner.assignment(), WAIT_S):
                if each.error is not None:
                    raise Lost(each.error.str())
                places.append(TopicPartition(each.topic, each.partition, max(each.offset, base.BEGINNING)))
            if self.assigned:
                self.inner.assign(places)
            else:
                for each in places:
                    self.inner.seek(each)
        self._have_moved()

    def bounds(self, key: str) -> tuple[int, int]:
        """Returns the first and the end offset of the partition for a reader with this isolation level."""
        with lost():
            low, high = self.inner.get_watermark_offsets(TopicPartition(*base.place(key)), WAIT_S, cached=False)
        return low, high

    def committed(self, keys: Iterable[str]) -> dict[str, int]:
        """Returns the group's offsets of those partitions that have one."""
        with lost():
            answered = self.inner.committed([TopicPartition(*base.place(key)) for key in keys], WAIT_S)
        if failed := [each.error.str() for each in answered if each.error is not None]:
            raise Lost(failed[0])
        return {base.key_of(each.topic, each.partition): each.offset for each in answered if each.offset >= 0}

    def commit(self) -> None:
        with contextlib.suppress(KafkaException):
            self.inner.commit(asynchronous=False)

    def close(self) -> None:
        with contextlib.suppress(KafkaException, RuntimeError):
            self.inner.close()

    def abandon(self) -> None:
        del self.inner


class NewerConsumer(Consumer):
    """A consumer of the consumer protocol (KIP-848), whose heartbeat interval is the broker's."""

    membership: ClassVar[dict[str, str | int]] = {
        "group.protocol": "consumer",
        # Otherwise librdkafka 2.16 forgets a single broker that is down, but still requests the group from it.
        "metadata.recovery.strategy": "none",
    }

    def close(self) -> None:
        """Closing may wait forever for a restarted broker, whose session timeout removes the member anyway."""
        with contextlib.suppress(Lost):
            base.within(WAIT_S, super().close)
