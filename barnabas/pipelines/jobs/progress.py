"""How far a job is: what Spark tells of each micro-batch, in one shape.

Knows nothing of who is shown it.
"""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


COUNTED = "counted"
"""What a query observes, as ``rows``, if its records are more than the rows that Spark sees."""


class Progress(NamedTuple):
    """A batch that is done."""

    query: str  #: its name, or the job's
    batch: int
    rows: int
    seconds: float
    lag: int | None  #: records that wait in the topics behind it, where the source knows

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


Report = Callable[[Progress], None]


class Following:
    """Reports each batch of a query once, in order."""

    def __init__(self, query: "StreamingQuery", name: str, report: Report) -> None:
        self._query, self._name, self._report = query, query.name or name, report
        self._last = ""

    def look(self) -> None:
        """Report what was done since the last look."""
        newest: Any = self._query.lastProgress
        if newest is None or newest["timestamp"] == self._last:
            return
        fresh: list[Any] = []
        for progress in reversed(self._query.recentProgress):
            if progress["timestamp"] == self._last:
                break
            fresh.append(progress)
        for progress in reversed(fresh):
            self._tell(progress)
            self._last = progress["timestamp"]

    def _tell(self, progress: Any) -> None:
        if "addBatch" not in progress["durationMs"]:
            return  # nothing was there: Spark says so now and then
        done = Progress(
            self._name,
            progress["batchId"],
            rows_of(progress),
            progress["durationMs"]["triggerExecution"] / 1000,
            lag_of((source["endOffset"], source["latestOffset"]) for source in progress["sources"]),
        )
        self._report(done)


def rows_of(progress: Any) -> int:
    """How many records a batch was about: as the query counted them under `COUNTED`, else as Spark did.

    Spark Connect tells no sum of all sources, and what was counted as a row in Spark's JSON: values, and a schema.
    """
    observed = (progress.get("observedMetrics") or {}).get(COUNTED)
    if observed is not None:
        counted = observed.asDict()
        if "schema" in counted:
            counted = {
                field["name"]: value
                for field, value in zip(counted["schema"]["fields"], counted["values"], strict=True)
            }
        return int(counted["rows"] or 0)
    rows = progress["numInputRows"]
    return int(sum(source["numInputRows"] for source in progress["sources"]) if rows is None else rows)


def lag_of(offsets: Iterable[tuple[str | None, str | None]]) -> int | None:
    """How many records lie between what was read and what is there: (end, latest) of each source, in Spark's JSON.

    Both are ``{"topic": {"0": 23}}``, or have that under ``topics``-like keys beside other things; sources without
    such offsets (files) do not count. None if no source counts.
    """
    found: int | None = None
    for end, latest in offsets:
        if not end or not latest:
            continue
        reached = _by_partition(json.loads(end))
        ahead = _by_partition(json.loads(latest))
        if ahead:
            found = (found or 0) + sum(max(0, at - reached.get(key, at)) for key, at in ahead.items())
    return found


def _by_partition(offset: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    """Offsets by topic and partition, wherever in this JSON they stand."""
    if not isinstance(offset, dict):
        return {}
    found: dict[tuple[str, ...], int] = {}
    for key, value in offset.items():
        if key.startswith("#"):
            continue  # what a source of ours keeps beside topics
        if isinstance(value, int) and key.isdecimal() and path:
            found[(path[-1], key)] = value
        else:
            found.update(_by_partition(value, (*path, key)))
    return found
