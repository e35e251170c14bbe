"""Ends a streaming query between two batches: ``StreamingQuery.stop`` would interrupt the one at hand.

Knows nothing of jobs.

Spark looks at a query's state before each batch, and once more before it runs what it has planned, where it gives up
the batch if the state says so. ``stop`` sets the state, and interrupts the thread. Here the state is set while a batch
runs beyond that point, or while there is none, and the thread is left alone until it does nothing but wait.
"""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_RUNTIMES = ("org.apache.spark.sql.execution.streaming.runtime", "org.apache.spark.sql.execution.streaming")
REMOTE_SECONDS = 10.0


class Ending:
    """Ends one query; ``step`` is called until ``is_running`` says that it has ended."""

    def __init__(self, query: "StreamingQuery") -> None:
        self._query: Any = query
        self._execution = _execution(query)
        self._is_told = False
        self._ran_before: int | None = None
        self._deadline = time.monotonic() + REMOTE_SECONDS

    def step(self) -> None:
        """Tell the query to begin no further batch, if this is the moment; then, that it need not sleep any longer.

        Where the query lives behind Spark Connect, its state is out of reach: it is stopped when it waits for data, or
        after ten seconds in which it does not.
        """
        if self._execution is None:
            if not self._query.status["isTriggerActive"] or time.monotonic() > self._deadline:
                self._query.stop()
        elif not self._is_told:
            if self._is_moment():
                self._execution.state().set(_terminated(self._query))
                self._is_told = True
        elif not self._query.status["isTriggerActive"]:
            self._query.stop()

    def _is_moment(self) -> bool:
        """Whether no batch is at hand, or the one at hand is being run: it was before, a step ago."""
        context = self._execution.getLatestExecutionContext()
        if context is None:
            return True
        number = context.batchId()
        if context.getDuration("addBatch").isDefined() or not self._query.status["isTriggerActive"]:
            return True
        runs = bool(context.getDuration("queryPlanning").isDefined())
        ran_before, self._ran_before = self._ran_before, number if runs else None
        return runs and ran_before == number


def is_running(query: "StreamingQuery") -> bool:
    """Whether it still works: a query that was told to end is not active any more, and finishes its batch."""
    execution = _execution(query)
    return bool(execution.queryExecutionThread().isAlive()) if execution is not None else query.isActive


def _execution(query: Any) -> Any:
    """Spark's own object of the query; None behind Spark Connect."""
    wrapper = getattr(query, "_jsq", None)
    return wrapper.streamingQuery() if wrapper is not None and hasattr(wrapper, "streamingQuery") else None


def _terminated(query: Any) -> Any:
    loader = query._jsq.getClass().getClassLoader()
    for package in _RUNTIMES:  # Spark 4.1 moved them
        try:
            return loader.loadClass(f"{package}.TERMINATED$").getField("MODULE$").get(None)
        except Exception as error:
            if "ClassNotFoundException" not in str(error):
                raise
    raise RuntimeError("this release of Spark keeps the state of its queries elsewhere")
