"""A simulated correct broker, random clients, and their history.

Knows nothing of the checker.
"""

from dataclasses import dataclass, field
from random import Random

from tests.history.records import BEFORE, FAIL, INFO, OK, POLL, SEND, TRANSACTION, History, Operation, Poll, Send

KEYS = ("a", "b", "c")
WRITERS = 3
READERS = 4


@dataclass(slots=True)
class Entry:
    """A record, or the marker at the end of a transaction (no value)."""

    value: int | None
    writer: "Writer | None"
    epoch: int


@dataclass(slots=True)
class Writer:
    """A process with at most one transaction at a time; ``ended`` has the outcomes by their numbers."""

    name: str
    operation: Operation | None = None
    epoch: int = 0
    ended: dict[int, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Reader:
    name: str
    committed: bool
    positions: dict[str, int]
    moved: str = BEFORE


class Simulation:
    """Some hundred steps of writers and readers, one per second."""

    def __init__(self, random: Random, steps: int) -> None:
        self.random = random
        self.logs: dict[str, list[Entry]] = {key: [] for key in KEYS}
        self.history = History()
        self.time = 0.0
        self.value = 0
        self.writers = [Writer(f"w{number}") for number in range(WRITERS)]
        self.readers = [Reader(f"r{number}", number % 2 == 0, dict.fromkeys(KEYS, 0)) for number in range(READERS)]
        for _ in range(steps):
            self.time += 1
            random.choice((self.send, self.work, self.work, self.poll, self.poll, self.seek))()
        for writer in self.writers:
            if writer.operation is not None:
                self.end(writer)
        for committed in (True, False):
            self.poll(Reader(f"end-{committed}", committed, dict.fromkeys(KEYS, 0)), count=1 << 30)

    # ------------------------------------------------------------ the broker

    def append(self, key: str, value: int | None, writer: Writer | None) -> int:
        self.logs[key].append(Entry(value, writer, writer.epoch if writer else 0))
        return len(self.logs[key]) - 1

    def last_stable_offset(self, key: str) -> int:
        for offset, entry in enumerate(self.logs[key]):
            if entry.writer is not None and entry.epoch not in entry.writer.ended:
                return offset
        return len(self.logs[key])

    def fetch(self, key: str, offset: int, committed: bool) -> tuple[int, list[tuple[str, int, int]]]:
        end = self.last_stable_offset(key) if committed else len(self.logs[key])
        found = []
        for at in range(offset, end):
            entry = self.logs[key][at]
            if entry.value is not None and (not committed or entry.writer is None or entry.writer.ended[entry.epoch]):
                found.append((key, at, entry.value))
        return end, found

    # ------------------------------------------------------------ clients

    def make(self) -> Send:
        self.value += 1
        return Send(self.random.choice(KEYS), self.value)

    def send(self) -> None:
        operation = Operation("plain", SEND, OK, self.time, self.time + 0.5, producer="plain")
        for _ in range(self.random.randint(1, 3)):
            send = self.make()
            lot = self.random.random()
            if lot < 0.9:
                offset = self.append(send.key, send.value, None)
                send.offset = offset if lot < 0.8 else None if lot < 0.85 else -1
            if send.offset is None:
                operation.outcome = INFO
            operation.sends.append(send)
        self.history.add(operation)

    def work(self) -> None:
        writer = self.random.choice(self.writers)
        if writer.operation is None:
            writer.operation = Operation(writer.name, TRANSACTION, OK, self.time, producer=writer.name)
        elif self.random.random() < 0.25:
            self.end(writer)
        else:
            send = self.make()
            send.offset = self.append(send.key, send.value, writer)
            writer.operation.sends.append(send)

    def end(self, writer: Writer) -> None:
        """Commits, aborts, or does either at random without a response."""
        operation, writer.operation = writer.operation, None
        assert operation is not None
        lot = self.random.random()
        is_committed = lot < 0.6 or (lot < 0.8 and self.random.random() < 0.5)
        operation.outcome = OK if lot < 0.6 else INFO if lot < 0.8 else FAIL
        operation.commit_at = self.time + 0.1 if operation.outcome != FAIL else None
        for key in {send.key for send in operation.sends}:
            self.append(key, None, writer)
        writer.ended[writer.epoch] = is_committed
        writer.epoch += 1
        operation.end = self.time + 0.5
        self.history.add(operation)

    def poll(self, reader: Reader | None = None, count: int = 4) -> None:
        reader = reader or self.random.choice(self.readers)
        records = []
        for key in self.random.sample(KEYS, len(KEYS)):
            end, found = self.fetch(key, reader.positions[key], reader.committed)
            given = found[:count]
            reader.positions[key] = given[-1][1] + 1 if len(found) > count else end
            records += given
        poll = Poll(reader.name, reader.committed, records, self.time + 0.5, reader.moved)
        reader.moved = ""
        self.history.add(Operation(reader.name, POLL, OK, self.time, self.time + 0.5, polls=[poll]))

    def seek(self) -> None:
        reader = self.random.choice(self.readers)
        key = self.random.choice(KEYS)
        reader.positions[key] = self.random.randint(0, len(self.logs[key]))
        reader.moved = BEFORE
