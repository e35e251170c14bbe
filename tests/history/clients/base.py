"""The interface of clients for workers, and their errors. Knows no library."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

WAIT_S = 20.0
"""How long anything is tried before its outcome is taken to be unknown."""

TRANSACTION_TIMEOUT_MS = 8000
"""After how long the coordinator aborts what an abandoned producer left open."""

REQUEST_TIMEOUT_MS = 3000
"""After how long a client takes an answer for lost: well before proxies bring late what was sent (see faults.py)."""

MAX_POLL_INTERVAL_MS = 10_000
"""How long a group waits for a member that does not come back, be it that its process is stuck."""

BEGINNING, END = -2, -1
"""Offsets to assign that stand for where a partition begins and ends."""


class Refused(Exception):
    """It did not happen. A transaction in which this was said is to be aborted; its producer may go on after that."""


class Lost(Exception):
    """Nobody knows whether it happened, or the producer cannot go on: it is to be abandoned."""


class Given(NamedTuple):
    """A record that a consumer was given."""

    key: str
    offset: int
    value: bytes


class Sent:
    """A record on its way. ``offset`` is None until it is acknowledged; -1: it was, but where was not told."""

    __slots__ = ("error", "offset")

    def __init__(self) -> None:
        self.offset: int | None = None
        self.error: str | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.offset is not None


class Producer(ABC):
    """Idempotent; transactional when it was given an id. All raise `Refused` or `Lost`, and nothing else."""

    @abstractmethod
    def start(self) -> None:
        """Get ready; with a transactional id, end what its last owner left open and fence it."""

    @abstractmethod
    def send(self, key: str, value: bytes) -> Sent: ...

    @abstractmethod
    def flush(self) -> None:
        """Wait until all that was sent is acknowledged or given up."""

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
        """Let go of it as a process does that is killed: say nothing to the broker."""


class Consumer(ABC):
    """Made with a group and an isolation level. ``moved`` says whether its positions changed but by reading."""

    group: str
    moved: bool = False
    complaint: str = ""
    """What the library said last, in place of a record; for who looks at the history."""

    @abstractmethod
    def assign(self, offsets: Mapping[str, int]) -> None: ...

    @abstractmethod
    def subscribe(self, topics: Iterable[str]) -> None: ...

    @abstractmethod
    def poll(self, count: int, seconds: float) -> list[Given]:
        """At most so many records, within so many seconds; what goes wrong on the way is left to the library."""

    @abstractmethod
    def assignment(self) -> list[str]: ...

    @abstractmethod
    def rewind(self) -> None:
        """Go on from the committed offsets in all partitions; raises `Lost`."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the positions of a group's member, if that works."""

    @abstractmethod
    def close(self) -> None: ...

    def abandon(self) -> None:
        self.close()


def place(key: str) -> tuple[str, int]:
    """The topic and partition of a key."""
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def key_of(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def within(seconds: float, call: Callable[..., Any], *arguments: Any) -> Any:
    """What the call returns or raises; `Lost` when it takes longer, in which case it is left to itself."""
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
    """Notes rebalances for the consumer: its next record may have any offset."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    def on_partitions_revoked(self, revoked: object) -> None:
        self.consumer.moved = True

    def on_partitions_assigned(self, assigned: object) -> None:
        self.consumer.moved = True
