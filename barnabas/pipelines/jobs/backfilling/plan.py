"""What a backfill has set out to do: which files, which records of each partition, in which batches.

It is made once and kept with the checkpoint, so that a second run, after a kill, goes on with the same. Knows nothing
of Spark, and does no I/O.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Span(NamedTuple):
    """The records of a partition: so many, at offsets from `start` to before `end` (there may be holes)."""

    topic: str
    partition: int
    records: int
    start: int
    end: int


class Range(NamedTuple):
    """Offsets of a partition from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int


class Plan(NamedTuple):
    """A backfill."""

    id: str  #: names its transactions, and the group that commits how far it is
    what: dict[str, Any]  #: the options that it was made with
    files: dict[str, int]  #: paths below the export, with their sizes
    spans: list[Span]
    oldest: int  #: timestamp in ms

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        return json.dumps(self._asdict(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        told = json.loads(text)
        return cls(told["id"], told["what"], told["files"], [Span(*each) for each in told["spans"]], told["oldest"])

    @property
    def records(self) -> int:
        return sum(span.records for span in self.spans)

    def check_same(self, what: dict[str, Any]) -> None:
        """Raises ValueError, naming the option, if this was made with others."""
        for name, value in what.items():
            if self.what.get(name) != value:
                raise ValueError(
                    f"{name} is {value!r}, but was {self.what.get(name)!r} when this backfill began: go on with that, "
                    "or begin another with a new checkpoint"
                )

    def check_files(self, there: dict[str, int]) -> None:
        """Raises ValueError, naming a file that is gone or is not what it was."""
        for path, size in self.files.items():
            if there.get(path) != size:
                state = "is not there any more" if path not in there else "is not what it was"
                raise ValueError(f"{path} {state}: this backfill cannot go on; begin another with a new checkpoint")


def batches(spans: Sequence[Span], records: int) -> list[list[Range]]:
    """Each partition's offsets cut into equally many ranges, so that a batch has about so many records."""
    count = max(1, -(-sum(span.records for span in spans) // records))
    cut = [[_nth(span, number, count) for span in spans] for number in range(count)]
    return [[piece for piece in batch if piece.start < piece.end] for batch in cut]


def _nth(span: Span, number: int, count: int) -> Range:
    length = span.end - span.start
    return Range(
        span.topic, span.partition, span.start + length * number // count, span.start + length * (number + 1) // count
    )


def partition_counts(spans: Iterable[Span], noted: dict[str, int]) -> dict[str, int]:
    """How many partitions each topic had: as the export has noted it, or as far as its records tell."""
    found: dict[str, int] = {}
    for span in spans:
        found[span.topic] = max(found.get(span.topic, 0), noted.get(span.topic, 0), span.partition + 1)
    return found
