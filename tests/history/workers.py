"""The processes of a run: each executes its steps with its client, and records its operations and their results.

Knows nothing of faults, nor of what is correct.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from random import Random

from tests.history.clients import Consumer, Producer, client
from tests.history.clients.base import END, Given, Lost, Refused, Sent
from tests.history.plan import ABORT, CRASH, TOPICS, Step, Worker, steps
from tests.history.records import (
    BEFORE,
    DURING,
    FAIL,
    INFO,
    OK,
    POLL,
    SEND,
    TRANSACTION,
    History,
    Operation,
    Poll,
    Send,
)

PER_POLL = 50
POLL_S = 0.2
REST_S = (0.0, 0.03)
"""The pause between two steps; without it a history grows faster than its information."""


class Scene:
    """The common part of all processes of a run: the broker's address, the history, and the known ends of logs."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self.bootstrap = bootstrap
        self.seed = seed
        self.history = History()
        self.began = time.monotonic()
        self.highest: dict[str, int] = {}
        self._lock = threading.Lock()

    def now(self) -> float:
        return time.monotonic() - self.began

    def record(self, operation: Operation) -> None:
        operation.end = self.now()
        with self._lock:
            self.history.add(operation)
            for send in operation.sends:
                if send.offset is not None:
                    self.highest[send.key] = max(send.offset, self.highest.get(send.key, 0))


class Process:
    """A worker on its own thread."""

    def __init__(self, scene: Scene, worker: Worker, number: int) -> None:
        self.scene, self.worker = scene, worker
        self.identity = worker.identities[number % len(worker.identities)]
        self.value = (number + 1) * 10_000_000
        self.made = 0
        self.producers: dict[bool, Producer] = {}
        self.names: dict[bool, str] = {}
        self.consumer: Consumer | None = None
        self.reader = ""
        self.committed = True
        self.subscribed = False
        self.positioned = False
        self.random = Random(f"{scene.seed}/{worker.name}/details")
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, name=worker.name, daemon=True)
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            for step in steps(self.scene.seed, self.worker):
                if self.ending.is_set():
                    break
                with contextlib.suppress(Lost):  # without a client the step is skipped
                    getattr(self, step.kind)(step)
                self.ending.wait(self.random.uniform(*REST_S))
            self._leave()
        except BaseException as error:
            self.error = error
            raise

    def _leave(self) -> None:
        for transactional in list(self.producers):
            self._drop(transactional)
        self._drop_consumer(politely=True)

    # ------------------------------------------------------------ what it has

    def _producer(self, transactional: bool) -> Producer:
        """Returns a producer that is ready; raises `Lost`."""
        if transactional not in self.producers:
            name = self.worker.client
            if not transactional and name.startswith("raw"):
                name = "confluent-kafka"
            producer = client(name).producer(self.scene.bootstrap, self.identity if transactional else None)
            try:
                producer.start()
            except (Lost, Refused) as error:
                producer.abandon()
                raise Lost(str(error)) from error
            self.made += 1
            self.producers[transactional] = producer
            self.names[transactional] = f"{self.worker.name}/{self.made}"
        return self.producers[transactional]

    def _drop(self, transactional: bool) -> None:
        producer = self.producers.pop(transactional, None)
        if producer is not None:
            producer.abandon()

    def _reader(self) -> Consumer:
        if self.consumer is None:
            group = self.worker.group or f"readers-{self.worker.client}"
            make = client(self.worker.client).consumer
            self.consumer = make(self.scene.bootstrap, group, committed=self.committed)
            self.made += 1
            self.reader = f"{self.worker.name}/{self.made}"
            self.positioned = self.subscribed = False
        return self.consumer

    def _drop_consumer(self, *, politely: bool) -> None:
        consumer, self.consumer = self.consumer, None
        if consumer is not None:
            if politely:
                consumer.close()
            else:
                consumer.abandon()

    # ------------------------------------------------------------ steps

    def take_over(self, step: Step) -> None:
        """Continues with another transactional id, or the same, which fences its former producer."""
        self._drop(True)
        self.identity = self.worker.identities[step.identity]

    def reopen(self, step: Step) -> None:
        self._drop_consumer(politely=self.random.random() < 0.5)
        self.committed = step.committed

    def assign(self, step: Step) -> None:
        reader = self._reader_that(subscribes=False)
        offsets = {}
        for key in step.keys:
            highest = self.scene.highest.get(key, 0)
            offsets[key] = max(0, highest - self.random.randrange(step.back)) if step.back else END
        self._positioning(lambda: reader.assign(offsets), subscribed=False)

    def subscribe(self, step: Step) -> None:
        reader = self._reader_that(subscribes=True)
        self._positioning(lambda: reader.subscribe(step.keys), subscribed=True)

    def _reader_that(self, *, subscribes: bool) -> Consumer:
        """Returns a consumer that has not used the other kind of positioning.

        The response to an earlier request of librdkafka to its group would replace partitions that are assigned now.
        """
        if self.positioned and self.subscribed is not subscribes:
            self._drop_consumer(politely=True)
        return self._reader()

    def _positioning(self, call: Callable[[], None], *, subscribed: bool) -> None:
        try:
            call()
        except Lost:
            self._drop_consumer(politely=False)
            raise
        self.positioned, self.subscribed = True, subscribed

    def send(self, step: Step) -> None:
        producer = self._producer(False)
        operation = self._begin(SEND, self.names[False])
        sent: list[Sent] = []
        lost = False
        try:
            for key in step.keys:
                self._send(producer, operation, sent, key)
            producer.flush()
        except Refused as error:
            operation.note = str(error)
        except Lost as error:
            operation.note, lost = str(error), True
        self._settle(operation, sent)
        operation.outcome = OK if all(send.offset is not None for send in operation.sends) else INFO
        self.scene.record(operation)
        if lost:
            self._drop(False)

    def poll(self, step: Step) -> None:
        operation = self._begin(POLL, "")
        with contextlib.suppress(Lost):
            for _ in range(step.polls):
                self._poll(operation)
            if self.subscribed and self.consumer is not None:
                self.consumer.commit()
        operation.outcome = OK
        if operation.polls:
            self.scene.record(operation)

    def transaction(self, step: Step) -> None:
        producer = self._producer(True)
        operation = self._begin(TRANSACTION, self.names[True])

        def act(sent: list[Sent]) -> None:
            for key in step.keys:
                if key:
                    self._send(producer, operation, sent, key)
                else:
                    with contextlib.suppress(Lost):  # of the consumer; the transaction continues
                        self._poll(operation)

        self._transact(producer, operation, step, act, offsets=step.offsets)

    def transform(self, step: Step) -> None:
        """Polls, sends the results and the offsets in one transaction, and repeats that if it fails."""
        producer = self._producer(True)
        reader = self._reader()
        if not self.positioned:
            self._take_inputs(reader)
        operation = self._begin(TRANSACTION, self.names[True])
        try:
            given = self._poll(operation)
        except Lost:
            given = []
        if not given or operation.polls[-1].moved == DURING:
            if operation.polls:
                operation.kind, operation.outcome = POLL, OK
                self.scene.record(operation)
            if given:
                self._begin_again()
            return

        def act(sent: list[Sent]) -> None:
            self._produce(producer, operation, sent, given)
            for _ in range(step.polls - 1):
                try:
                    more = self._poll(operation)
                except Lost as error:
                    raise Refused("the consumer is gone") from error
                if operation.polls[-1].moved:
                    raise Refused("the partitions may be another's by now")
                self._produce(producer, operation, sent, more)

        if not self._transact(producer, operation, step, act, offsets=True):
            self._begin_again(drop=step.end == CRASH)

    def _take_inputs(self, reader: Consumer) -> None:
        if self.worker.client.startswith("raw"):
            keys = [f"{self.worker.reads}-{partition}" for partition in range(TOPICS[self.worker.reads])]
            self._positioning(lambda: reader.assign(dict.fromkeys(keys, 0)), subscribed=False)
            self._begin_again()
        else:
            self._positioning(lambda: reader.subscribe([self.worker.reads]), subscribed=True)

    def _begin_again(self, *, drop: bool = False) -> None:
        """Reads from the committed offsets, once open transactions have ended."""
        try:
            if drop:
                raise Lost("as planned")
            self._producer(True)  # a new one aborts the last one's transaction
            assert self.consumer is not None
            self.consumer.rewind()
        except (Lost, AssertionError):
            self._drop_consumer(politely=False)

    def _produce(self, producer: Producer, operation: Operation, sent: list[Sent], given: list[Given]) -> None:
        for record in given:
            key = f"{self.worker.writes}-{self.random.randrange(TOPICS[self.worker.writes])}"
            self._send(producer, operation, sent, key, source=int(record.value.split()[0]))

    # ------------------------------------------------------------ parts of steps

    def _begin(self, kind: str, producer: str) -> Operation:
        return Operation(
            self.worker.name, kind, FAIL, start=self.scene.now(), producer=producer, client=self.worker.client
        )

    def _send(
        self, producer: Producer, operation: Operation, sent: list[Sent], key: str, source: int | None = None
    ) -> None:
        self.value += 1
        operation.sends.append(Send(key, self.value, source=source))
        text = b"%d" % self.value if source is None else b"%d %d" % (self.value, source)
        sent.append(producer.send(key, text))

    def _poll(self, operation: Operation) -> list[Given]:
        """Returns the reader's next records; raises `Lost` after it was dropped."""
        reader = self._reader()
        if not self.positioned:
            raise Lost("it has not been told yet what to read")
        before, reader.moved = reader.moved, False
        try:
            given = reader.poll(PER_POLL, POLL_S)
        except Lost:
            self._drop_consumer(politely=False)
            raise
        if reader.complaint:
            operation.note, reader.complaint = f"{operation.note} {reader.complaint}".strip(), ""
        moved = DURING if reader.moved else BEFORE if before else ""
        if given or moved:
            records = [(each.key, each.offset, int(each.value.split()[0])) for each in given]
            operation.polls.append(Poll(self.reader, self.committed, records, self.scene.now(), moved))
        return given

    def _transact(
        self,
        producer: Producer,
        operation: Operation,
        step: Step,
        act: Callable[[list[Sent]], None],
        *,
        offsets: bool,
    ) -> bool:
        """Runs this in a transaction that ends as the step demands; returns whether it was committed."""
        sent: list[Sent] = []
        try:
            producer.begin()
            act(sent)
            if step.end == CRASH:
                raise Lost("as planned")
            producer.flush()
            if not all(each.is_acknowledged for each in sent):
                raise Refused(next(str(each.error) for each in sent if not each.is_acknowledged))
            if offsets and (positions := self._positions(operation)) and self.consumer is not None:
                producer.send_offsets(positions, self.consumer)
            if step.end == ABORT:
                raise Refused("as planned")
            operation.commit_at = self.scene.now()
            producer.commit()
            operation.outcome = OK
        except Refused as error:
            operation.note = str(error)
            operation.outcome = FAIL if operation.commit_at is None else INFO
            try:
                producer.abort()
            except (Refused, Lost) as problem:
                operation.note += f"; then {problem}"
                self._drop(True)
        except Lost as error:
            operation.note = str(error)
            operation.outcome = FAIL if operation.commit_at is None else INFO
            self._drop(True)
        self._settle(operation, sent)
        self.scene.record(operation)
        return operation.outcome == OK

    @staticmethod
    def _positions(operation: Operation) -> dict[str, int]:
        """Returns the positions after the polls of this operation."""
        return {key: offset + 1 for poll in operation.polls for key, offset, _ in poll.records}

    @staticmethod
    def _settle(operation: Operation, sent: list[Sent]) -> None:
        for send, each in zip(operation.sends, sent, strict=False):
            send.offset = each.offset
