"""The interface of clients for workers, and their errors. Knows nothing of libraries."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

WAIT_S = 20.0
"""The time after which the outcome of an operation is unknown, in seconds."""

TRANSACTION_TIMEOUT_MS = 8000
"""The time after which the coordinator aborts a transaction of an abandoned producer."""

REQUEST_TIMEOUT_MS = 3000
"""The request time-out of clients: shorter than the delays of late requests (see faults.py)."""

MAX_POLL_INTERVAL_MS = 10_000
"""The time that a group waits for a member that does not return, even if its process hangs."""

BEGINNING, END = -2, -1
"""Offsets that denote the first and the end offset of a partition."""


class Refused(Exception):
    """It did not happen. A transaction has to be aborted then; its producer may continue."""


class Lost(Exception):
    """The outcome is unknown, or the producer cannot continue: it has to be abandoned."""


class Given(NamedTuple):
    """A record that a consumer has read."""

    key: str
    offset: int
    value: bytes


class Sent:
    """A record in flight. ``offset`` is None until it is acknowledged; -1 if the acknowledgement had no offset."""

    __slots__ = ("error", "offset")

    def __init__(self) -> None:
        self.offset: int | None = None
        self.error: str | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.offset is not None


class Producer(ABC):
    """Idempotent, and transactional with an id. All methods raise only `Refused` or `Lost`."""

    @abstractmethod
    def start(self) -> None:
        """Initializes the producer; with a transactional id, it fences the last owner and aborts its transaction."""

    @abstractmethod
    def send(self, key: str, value: bytes) -> Sent: ...

    @abstractmethod
    def flush(self) -> None:
        """Waits until all records are acknowledged or given up."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send_offsets(self, offsets: Mapping[str, int], consumer: "Consumer") -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def abandon(self) -> None:
        """Drops it like a killed process: without a message to the broker."""


class Consumer(ABC):
    """Created with a group and an isolation level. ``moved`` is whether its positions changed other than by reading."""

    group: str
    moved: bool = False
    complaint: str = ""
    """The last error of the library instead of a record, for readers of the history."""

    @abstractmethod
    def assign(self, offsets: Mapping[str, int]) -> None: ...

    @abstractmethod
    def subscribe(self, topics: Iterable[str]) -> None: ...

    @abstractmethod
    def poll(self, count: int, seconds: float) -> list[Given]:
        """Returns at most this number of records, within this time; the library handles errors."""

    @abstractmethod
    def assignment(self) -> list[str]: ...

    @abstractmethod
    def rewind(self) -> None:
        """Continues from the committed offsets in all partitions; raises `Lost`."""

    @abstractmethod
    def commit(self) -> None:
        """Commits the positions of a group's member, if possible."""

    @abstractmethod
    def close(self) -> None: ...

    def abandon(self) -> None:
        self.close()


def place(key: str) -> tuple[str, int]:
    """Returns the topic and partition of a key."""
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def key_of(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def within(seconds: float, call: Callable[..., Any], *arguments: Any) -> Any:
    """Returns or raises the result of the call; raises `Lost` if it takes longer, and abandons it."""
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(call(*arguments))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise Lost(f"{call} did not return within {seconds} s")
    return done[0]


class Moves:
    """Records rebalances for the consumer: its next record may have any offset."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    def on_partitions_revoked(self, revoked: object) -> None:
        self.consumer.moved = True

    def on_partitions_assigned(self, assigned: object) -> None:
        self.consumer.moved = True
