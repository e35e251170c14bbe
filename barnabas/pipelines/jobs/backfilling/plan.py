"""The plan of a backfill: the files, the records of each partition, and the batches.

It is made once and kept in the checkpoint, so a run after a kill continues with the same plan. Knows nothing of Spark,
and does no I/O.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Span(NamedTuple):
    """The records of a partition: their number, and their offsets from `start` up to `end`, exclusive, with gaps."""

    topic: str
    partition: int
    records: int
    start: int
    end: int


class Range(NamedTuple):
    """Offsets of a partition from `start` up to `end`, exclusive."""

    topic: str
    partition: int
    start: int
    end: int


class Plan(NamedTuple):
    """The plan of a backfill."""

    id: str  #: names its transactions, and the group that commits its progress
    what: dict[str, Any]  #: the options that it was made from
    files: dict[str, int]  #: sizes by path, relative to the export
    spans: list[Span]
    oldest: int  #: the oldest timestamp in ms

    def to_json(self) -> str:
        """Returns the JSON that `from_json` reads."""
        return json.dumps(self._asdict(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        fields = json.loads(text)
        return cls(
            fields["id"], fields["what"], fields["files"], [Span(*each) for each in fields["spans"]], fields["oldest"]
        )

    @property
    def records(self) -> int:
        return sum(span.records for span in self.spans)

    def check_same(self, what: dict[str, Any]) -> None:
        """Checks that the plan was made from these options.

        :raises ValueError: an option was different; the message names it.
        """
        for name, value in what.items():
            if self.what.get(name) != value:
                raise ValueError(
                    f"{name} is {value!r}, but was {self.what.get(name)!r} when this backfill began: use that, "
                    "or begin another with a new checkpoint"
                )

    def check_files(self, there: dict[str, int]) -> None:
        """Checks that the planned files exist unchanged.

        :raises ValueError: a file is missing or has another size; the message names it.
        """
        for path, size in self.files.items():
            if there.get(path) != size:
                state = "is not there any more" if path not in there else "is not what it was"
                raise ValueError(f"{path} {state}: this backfill cannot go on; begin another with a new checkpoint")


def batches(spans: Sequence[Span], records: int) -> list[list[Range]]:
    """Returns batches of about `records` records. Each partition is cut into the same number of ranges."""
    count = max(1, -(-sum(span.records for span in spans) // records))
    cut = [[_nth(span, number, count) for span in spans] for number in range(count)]
    return [[piece for piece in batch if piece.start < piece.end] for batch in cut]


def _nth(span: Span, number: int, count: int) -> Range:
    length = span.end - span.start
    return Range(
        span.topic, span.partition, span.start + length * number // count, span.start + length * (number + 1) // count
    )


def partition_counts(spans: Iterable[Span], noted: dict[str, int]) -> dict[str, int]:
    """Returns the number of partitions of each topic, by the export's notes and by its records.

    :param noted: the number of partitions by topic, as the export has noted it.
    """
    found: dict[str, int] = {}
    for span in spans:
        found[span.topic] = max(found.get(span.topic, 0), noted.get(span.topic, 0), span.partition + 1)
    return found
