"""The progress of a job: what Spark reports of each micro-batch, in one form.

Knows nothing of how it is displayed.
"""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


COUNTED = "counted"
"""The name of the observation in which a query counts its records, as ``rows``, where they are not Spark's rows."""


class Progress(NamedTuple):
    """A batch that is complete."""

    query: str  #: the query's name, or the job's
    batch: int
    rows: int
    seconds: float
    lag: int | None  #: records in the topics that are still to be read, if the source knows

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


Report = Callable[[Progress], None]


class ProgressReporter:
    """Reports each batch of a query once, in order."""

    def __init__(self, query: "StreamingQuery", name: str, report: Report) -> None:
        self._query, self._name, self._report = query, query.name or name, report
        self._last = ""

    def poll(self) -> None:
        """Reports the batches that were completed since the last call."""
        newest: Any = self._query.lastProgress
        if newest is None or newest["timestamp"] == self._last:
            return
        fresh: list[Any] = []
        for progress in reversed(self._query.recentProgress):
            if progress["timestamp"] == self._last:
                break
            fresh.append(progress)
        for progress in reversed(fresh):
            self._report_batch(progress)
            self._last = progress["timestamp"]

    def _report_batch(self, progress: Any) -> None:
        if "addBatch" not in progress["durationMs"]:
            return  # no batch: without new data Spark reports that it is idle
        done = Progress(
            self._name,
            progress["batchId"],
            rows_of(progress),
            progress["durationMs"]["triggerExecution"] / 1000,
            lag_of((source["endOffset"], source["latestOffset"]) for source in progress["sources"]),
        )
        self._report(done)


def rows_of(progress: Any) -> int:
    """Returns the number of records of a batch, as the query counted them under `COUNTED`, or else as Spark did.

    Spark Connect reports no total of all sources, and reports an observation as a row in Spark's JSON: values and a
    schema.
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
    """Returns the number of records that are still to be read, or None if no source of the query has offsets.

    :param offsets: for each source the end offset of its batch and the latest offset, in Spark's JSON. Both have the
        form ``{"topic": {"0": 23}}``, possibly below other keys. Sources without such offsets (files) do not count.
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
    """Returns the offsets by topic and partition, at whatever depth of the JSON they are."""
    if not isinstance(offset, dict):
        return {}
    found: dict[tuple[str, ...], int] = {}
    for key, value in offset.items():
        if key.startswith("#"):
            continue  # further keys of our own source
        if isinstance(value, int) and key.isdecimal() and path:
            found[(path[-1], key)] = value
        else:
            found.update(_by_partition(value, (*path, key)))
    return found
