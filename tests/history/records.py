"""The records of a history: operations, with the values that were sent and received.

Knows neither clients nor brokers. Workers write them, and the checker reads them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OK, FAIL, INFO = "ok", "fail", "info"
"""It took effect; it never takes effect; the outcome is unknown, and it may take effect later."""

SEND, TRANSACTION, POLL = "send", "transaction", "poll"

BEFORE, DURING = "before", "during"
"""When a reader's positions were changed other than by reading: before this poll, or during it."""


@dataclass(slots=True)
class Send:
    """One record. Its value is sent only once in a history.

    ``offset`` is the acknowledged one, None if it was not acknowledged, -1 if the acknowledgement had no offset.
    ``source`` is the value of the input in a loop that consumes, transforms and produces.
    """

    key: str
    value: int
    offset: int | None = None
    source: int | None = None


@dataclass(slots=True)
class Poll:
    """The records of one call: (key, offset, value) in their order; ``at`` is when it returned."""

    reader: str
    committed: bool
    records: list[tuple[str, int, int]]
    at: float = 0.0
    moved: str = ""


@dataclass(slots=True)
class Operation:
    """An operation of a process between ``start`` and ``end`` (seconds since the run began).

    For a transaction, ``commit_at`` is the time of its producer's first EndTxn for a commit, None without one, and the
    outcome is that of the commit. For plain sends the outcome is OK if all records were acknowledged. The polls are
    valid whatever the outcome.
    """

    process: str
    kind: str
    outcome: str
    start: float = 0.0
    end: float = 0.0
    commit_at: float | None = None
    producer: str = ""
    client: str = ""
    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    note: str = ""
    index: int = -1

    @property
    def is_transaction(self) -> bool:
        return self.kind == TRANSACTION

    def __str__(self) -> str:
        return f"{self.index}: {self.process} {self.kind} {self.outcome}"


@dataclass(slots=True)
class Transform:
    """A group that consumes, transforms and produces: its inputs, outputs, and committed offsets at the end."""

    inputs: list[str]
    outputs: list[str]
    committed: dict[str, int]


@dataclass(slots=True)
class History:
    """Operations in the order of their ends, their plan, and the state at the end.

    ``stuck`` has the reason for a partition whose end a read_committed reader could not reach.
    """

    operations: list[Operation] = field(default_factory=list)
    plan: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    stuck: dict[str, str] = field(default_factory=dict)
    transforms: list[Transform] = field(default_factory=list)

    def __post_init__(self) -> None:
        for index, operation in enumerate(self.operations):
            operation.index = index

    def add(self, operation: Operation) -> None:
        operation.index = len(self.operations)
        self.operations.append(operation)

    def sends(self) -> Iterator[tuple[Operation, Send]]:
        for operation in self.operations:
            for send in operation.sends:
                yield operation, send

    def polls(self) -> Iterator[tuple[Operation, Poll]]:
        for operation in self.operations:
            for poll in operation.polls:
                yield operation, poll


def write(history: History, path: Path) -> None:
    """Writes a line of JSON for the plan, for each fault, for each operation, and for the end."""
    with path.open("w") as file:
        file.write(line("plan", history.plan))
        for event in history.events:
            file.write(line("event", event))
        for operation in history.operations:
            file.write(line("operation", plain(operation)))
        for transform in history.transforms:
            file.write(line("transform", plain(transform)))
        file.write(line("stuck", history.stuck))


def read(path: Path) -> History:
    """Reads the file of `write`."""
    history = History()
    with path.open() as file:
        for text in file:
            ((name, content),) = json.loads(text).items()
            match name:
                case "plan":
                    history.plan = content
                case "event":
                    history.events.append(content)
                case "operation":
                    history.operations.append(operation_from(content))
                case "transform":
                    history.transforms.append(Transform(**content))
                case "stuck":
                    history.stuck = content
    return history


def line(name: str, content: object) -> str:
    return json.dumps({name: content}, separators=(",", ":")) + "\n"


def plain(thing: Any) -> Any:
    """Returns dataclasses as mappings, without fields that have their defaults."""
    if isinstance(thing, list | tuple):
        return [plain(each) for each in thing]
    if not hasattr(thing, "__dataclass_fields__"):
        return thing
    named = ((name, getattr(thing, name)) for name in thing.__dataclass_fields__)
    return {name: plain(value) for name, value in named if value not in (None, "", [])}


def operation_from(content: Mapping[str, Any]) -> Operation:
    sends = [Send(**send) for send in content.get("sends", ())]
    polls = [
        Poll(**{**poll, "records": [tuple(record) for record in poll.get("records", ())]})
        for poll in content.get("polls", ())
    ]
    return Operation(**{**content, "sends": sends, "polls": polls})
