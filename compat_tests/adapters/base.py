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
    """A record, as a consumer returns it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Written(NamedTuple):
    """The partition, offset and timestamp of a record, as in the producer's acknowledgement."""

    partition: int
    offset: int


class Refused(Exception):
    """The broker refused; ``code`` is the protocol's error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code


class Fenced(Exception):
    """A transactional producer was fenced: another one has its id, or its transaction timed out."""


class OffsetOutOfRange(Exception):
    """A consumer with ``auto.offset.reset=none`` has no offset to read from."""


class Pending(abc.ABC):
    """A record that is being sent."""

    @abc.abstractmethod
    def result(self) -> Written:
        """Waits for the response. Raises `Refused`."""


class Producer(abc.ABC):
    def __init__(self) -> None:
        self.sent: list[Pending] = []

    def flush(self) -> None:
        """Returns once all responses have come; with acks=0, once all records are sent. Raises `Refused`."""
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
    """A producer with a transactional id; making it fences the previous one.

    Every method, and the result of every record, may raise `Fenced`, and `Refused` for abortable errors.
    """

    @abc.abstractmethod
    def begin(self) -> None: ...

    @abc.abstractmethod
    def commit(self) -> None: ...

    @abc.abstractmethod
    def abort(self) -> None: ...

    @abc.abstractmethod
    def send_offsets(self, consumer: "Consumer", offsets: Mapping[Place, int]) -> None:
        """Adds the group's offsets to the transaction, with the consumer's member id and generation.

        aiokafka sends the group's name only.
        """


class Consumer(abc.ABC):
    @abc.abstractmethod
    def assign(self, places: Iterable[Place]) -> None: ...

    @abc.abstractmethod
    def subscribe(self, topics: Sequence[str]) -> None: ...

    @abc.abstractmethod
    def poll(self, seconds: float = 0.1) -> list[Record]:
        """Returns the records that came within that time, and takes part in the group. Raises `OffsetOutOfRange`."""

    @abc.abstractmethod
    def assignment(self) -> set[Place]: ...

    @abc.abstractmethod
    def commit(self, offsets: Mapping[Place, int] | None = None) -> None:
        """Commits these offsets, or the positions, and waits for the response. Raises `Refused`."""

    @abc.abstractmethod
    def commit_soon(self) -> None:
        """Commits the positions without waiting."""

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
        """Returns the offset of the first record that is not older than ``timestamp``; None if all are."""

    @abc.abstractmethod
    def bounds(self, place: Place) -> tuple[int, int]:
        """Returns the start and the end offset."""

    @abc.abstractmethod
    def close(self) -> None: ...


class Client(abc.ABC):
    """A library connected to a broker. Closing it closes everything that it made."""

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
        """Aborts the open transaction of an earlier producer with this id before it returns."""

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
