"""Stops a streaming query between two batches; ``StreamingQuery.stop`` would interrupt the running batch.

Knows nothing of jobs.

Spark checks a query's state before each batch, and once more between planning a batch and running it. There it drops
the batch if the query is terminated. ``stop`` sets the state and interrupts the thread. Here the state is set while a
batch runs beyond the second check, or while there is no batch. The thread is interrupted only while it waits for its
next trigger.
"""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_RUNTIMES = ("org.apache.spark.sql.execution.streaming.runtime", "org.apache.spark.sql.execution.streaming")
REMOTE_SECONDS = 10.0


class Stopping:
    """Stops one query: call ``step`` until ``is_running`` is False."""

    def __init__(self, query: "StreamingQuery") -> None:
        self._query: Any = query
        self._execution = _execution(query)
        self._is_terminated = False
        self._running_batch: int | None = None
        self._deadline = time.monotonic() + REMOTE_SECONDS

    def step(self) -> None:
        """Marks the query as terminated if that loses no batch; once it is, wakes it up from its wait for a trigger.

        The state of a query behind Spark Connect cannot be set. Such a query is stopped when it waits for data, or
        after ten seconds.
        """
        if self._execution is None:
            if not self._query.status["isTriggerActive"] or time.monotonic() > self._deadline:
                self._query.stop()
        elif not self._is_terminated:
            if self._loses_no_batch():
                self._execution.state().set(_terminated(self._query))
                self._is_terminated = True
        elif not self._query.status["isTriggerActive"]:
            self._query.stop()

    def _loses_no_batch(self) -> bool:
        """Returns whether there is no batch, or the batch is past planning: it was one step ago."""
        context = self._execution.getLatestExecutionContext()
        if context is None:
            return True
        number = context.batchId()
        if context.getDuration("addBatch").isDefined() or not self._query.status["isTriggerActive"]:
            return True
        is_planned = bool(context.getDuration("queryPlanning").isDefined())
        before, self._running_batch = self._running_batch, number if is_planned else None
        return is_planned and before == number


def is_running(query: "StreamingQuery") -> bool:
    """Returns whether the query's thread is alive; a terminated query is inactive, but may still finish its batch."""
    execution = _execution(query)
    return bool(execution.queryExecutionThread().isAlive()) if execution is not None else query.isActive


def _execution(query: Any) -> Any:
    """Returns Spark's StreamExecution of the query, or None behind Spark Connect."""
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
    raise RuntimeError("this release of Spark has no known state of streaming queries")
