"""aiokafka with the workers' interface, on a loop in its own thread. Knows nothing but its library."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from tests.history.clients import base
from tests.history.clients.base import REQUEST_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS, WAIT_S, Given, Lost, Refused, Sent

logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)  # its messages are about intended faults

COMMON: dict[str, Any] = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "retry_backoff_ms": 20}


class Loop:
    """One event loop for all clients."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)  # for futures that the library drops after a failure
        threading.Thread(target=self.loop.run_forever, name="aiokafka", daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, Any], seconds: float = WAIT_S) -> Any:
        """Returns the result; any exception, or a time-out, is raised as `Lost`."""
        try:
            return asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, seconds), self.loop).result()
        except Exception as error:
            raise Lost(repr(error)) from error

    def call(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        async def on_loop() -> Any:
            return function(*arguments, **keywords)

        return self.run(on_loop())


LOOP = Loop()


class Producer(base.Producer):
    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        self.configs = {**COMMON, "bootstrap_servers": bootstrap, "acks": "all", "enable_idempotence": True}
        if transactional_id is not None:
            self.configs |= {"transactional_id": transactional_id, "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS}
        self.inner: Any = None

    def start(self) -> None:
        self.inner = LOOP.call(AIOKafkaProducer, **self.configs)
        LOOP.run(self.inner.start())

    def send(self, key: str, value: bytes) -> Sent:
        topic, partition = base.place(key)
        sent = Sent()

        def done(future: "asyncio.Future[Any]") -> None:
            error = None if future.cancelled() else future.exception()
            if future.cancelled() or error is not None:
                sent.error = repr(error)
            else:
                metadata = future.result()
                sent.offset = -1 if metadata is None or metadata.offset < 0 else metadata.offset

        async def send() -> None:
            (await self.inner.send(topic, value, partition=partition)).add_done_callback(done)

        try:
            LOOP.run(send())
        except Lost as error:
            if isinstance(error.__cause__, KafkaError):
                raise Refused(str(error)) from error
            raise
        return sent

    def flush(self) -> None:
        LOOP.run(self.inner.flush())
        LOOP.call(lambda: None)  # callbacks of futures run a step later

    def begin(self) -> None:
        LOOP.run(self.inner.begin_transaction())

    def send_offsets(self, offsets: Mapping[str, int], consumer: base.Consumer) -> None:
        named = {TopicPartition(*base.place(key)): offset for key, offset in offsets.items()}
        LOOP.run(self.inner.send_offsets_to_transaction(named, consumer.group))

    def commit(self) -> None:
        LOOP.run(self.inner.commit_transaction())

    def abort(self) -> None:
        LOOP.run(self.inner.abort_transaction())

    def abandon(self) -> None:
        """Closes its connections first, which is the only way to drop it without a goodbye."""
        if self.inner is not None:
            inner, self.inner = self.inner, None
            with contextlib.suppress(Lost):
                LOOP.run(kill(inner))


async def kill(producer: Any) -> None:
    sender = producer._sender._sender_task
    if sender is not None:
        sender.cancel()
    await producer.client.close()
    producer._closed = True


class Moves(base.Moves, ConsumerRebalanceListener):
    """The listener of this library."""


class Consumer(base.Consumer):
    def __init__(self, bootstrap: str, group: str, *, committed: bool) -> None:
        self.group = group
        self.inner = LOOP.call(
            AIOKafkaConsumer,
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
        )
        LOOP.run(self.inner.start())

    def assign(self, offsets: Mapping[str, int]) -> None:
        async def assign() -> None:
            self.inner.unsubscribe()
            places = {TopicPartition(*base.place(key)): offset for key, offset in offsets.items()}
            self.inner.assign(list(places))
            for place, offset in places.items():
                if offset == base.BEGINNING:
                    await self.inner.seek_to_beginning(place)
                elif offset == base.END:
                    await self.inner.seek_to_end(place)
                else:
                    self.inner.seek(place, offset)

        LOOP.run(assign())
        self.moved = True

    def subscribe(self, topics: Iterable[str]) -> None:
        def subscribe() -> None:
            self.inner.unsubscribe()
            self.inner.subscribe(list(topics), listener=Moves(self))

        LOOP.call(subscribe)
        self.moved = True

    def poll(self, count: int, seconds: float) -> list[Given]:
        polled = LOOP.run(self.inner.getmany(timeout_ms=int(seconds * 1000), max_records=count))
        return [
            Given(base.key_of(each.topic, each.partition), each.offset, each.value)
            for records in polled.values()
            for each in records
        ]

    def assignment(self) -> list[str]:
        return [base.key_of(each.topic, each.partition) for each in self.inner.assignment()]

    def rewind(self) -> None:
        LOOP.run(self.inner.seek_to_committed())
        self.moved = True

    def commit(self) -> None:
        with contextlib.suppress(Lost):
            LOOP.run(self.inner.commit())

    def close(self) -> None:
        with contextlib.suppress(Lost):
            LOOP.run(self.inner.stop())
