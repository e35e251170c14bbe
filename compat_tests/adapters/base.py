"""The interface of all clients, which the scenarios use.

Knows no client and no broker: times are milliseconds since 1970, waits are seconds, offsets are Kafka's.
"""

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Place = tuple[str, int]
"""A topic and one of its partitions."""

Headers = Sequence[tuple[str, bytes | None]]

CREATE_TIME, LOG_APPEND_TIME = 0, 1
WAIT_S = 60.0
"""Longer than anything takes that works."""


class Record(NamedTuple):
    """A record as a consumer was given it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Written(NamedTuple):
    """Where a record went, as the producer was told."""

    partition: int
    offset: int


class Refused(Exception):
    """The broker refused; ``code`` is the protocol's error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code


class Fenced(Exception):
    """A transactional producer is told that it is one no longer: its id has another, or its time is over."""


class OffsetOutOfRange(Exception):
    """A consumer that was told not to reset had nowhere to read from."""


class Pending(abc.ABC):
    """A record on its way."""

    @abc.abstractmethod
    def result(self) -> Written:
        """Wait for the answer. Raises `Refused`."""


class Producer(abc.ABC):
    def __init__(self) -> None:
        self.sent: list[Pending] = []

    def flush(self) -> None:
        """Return once all is answered, or on its way when no answer is wanted. Raises `Refused`."""
        self._flush()
        sent, self.sent = self.sent, []
        for pending in sent:
            pending.result()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int = 0,
        timestamp: int | None = None,
    ) -> Pending:
        pending = self._send(topic, value, key, headers, partition, timestamp)
        self.sent.append(pending)
        return pending

    @abc.abstractmethod
    def _send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int,
        timestamp: int | None,
    ) -> Pending: ...

    @abc.abstractmethod
    def _flush(self) -> None: ...

    @abc.abstractmethod
    def close(self) -> None: ...


class Transactional(Producer):
    """A producer with a transactional id, of which it is the only one as soon as it is made.

    All of it, also ``flush`` and what was sent, may raise `Fenced`, and `Refused` for what an abort mends.
    """

    @abc.abstractmethod
    def begin(self) -> None: ...

    @abc.abstractmethod
    def commit(self) -> None: ...

    @abc.abstractmethod
    def abort(self) -> None: ...

    @abc.abstractmethod
    def send_offsets(self, consumer: "Consumer", offsets: Mapping[Place, int]) -> None:
        """Have these become its group's offsets with the transaction; the broker is told who the consumer is in it.

        aiokafka tells the group's name only.
        """


class Consumer(abc.ABC):
    @abc.abstractmethod
    def assign(self, places: Iterable[Place]) -> None: ...

    @abc.abstractmethod
    def subscribe(self, topics: Sequence[str]) -> None: ...

    @abc.abstractmethod
    def poll(self, seconds: float = 0.1) -> list[Record]:
        """What came within that time, perhaps nothing; it also takes part in the group. Raises `OffsetOutOfRange`."""

    @abc.abstractmethod
    def assignment(self) -> set[Place]: ...

    @abc.abstractmethod
    def commit(self, offsets: Mapping[Place, int] | None = None) -> None:
        """Commit these offsets, or the positions, and wait for the answer. Raises `Refused`."""

    @abc.abstractmethod
    def commit_soon(self) -> None:
        """Commit the positions without waiting."""

    @abc.abstractmethod
    def committed(self, place: Place) -> int | None: ...

    @abc.abstractmethod
    def position(self, place: Place) -> int: ...

    @abc.abstractmethod
    def seek(self, place: Place, offset: int) -> None: ...

    @abc.abstractmethod
    def pause(self, place: Place) -> None: ...

    @abc.abstractmethod
    def resume(self, place: Place) -> None: ...

    @abc.abstractmethod
    def offset_at(self, place: Place, timestamp: int) -> int | None:
        """The offset of the first record that is not older than ``timestamp``; None when all are."""

    @abc.abstractmethod
    def bounds(self, place: Place) -> tuple[int, int]:
        """The first offset, and the one after the last."""

    @abc.abstractmethod
    def close(self) -> None: ...


class Client(abc.ABC):
    """One library, one broker. Closing it closes what it made."""

    name: str
    sends_null_headers = True
    """Whether its producer lets a header have no value."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abc.abstractmethod
    def producer(
        self,
        *,
        acks: int = -1,
        compression: str = "none",
        idempotent: bool = False,
        linger_ms: int = 0,
        max_request_bytes: int = 1 << 20,
    ) -> Producer: ...

    @abc.abstractmethod
    def transactional(self, transactional_id: str, *, timeout_ms: int = 60_000) -> Transactional:
        """What an earlier one with this id left open is aborted when this returns."""

    @abc.abstractmethod
    def consumer(
        self,
        *,
        group: str | None = None,
        reset: str = "earliest",
        instance: str | None = None,
        auto_commit: bool = False,
        isolation: str = "read_uncommitted",
        assignor: str = "range",
        session_ms: int = 6000,
    ) -> Consumer: ...

    @abc.abstractmethod
    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Raises `Refused`."""

    @abc.abstractmethod
    def delete_topic(self, topic: str) -> None:
        """Raises `Refused`."""

    @abc.abstractmethod
    def topics(self) -> set[str]: ...

    @abc.abstractmethod
    def close(self) -> None: ...
