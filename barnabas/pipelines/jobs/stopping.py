"""Ends a streaming query between two batches: ``StreamingQuery.stop`` would interrupt the one at hand.

Knows nothing of jobs.
"""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_RUNTIMES = ("org.apache.spark.sql.execution.streaming.runtime", "org.apache.spark.sql.execution.streaming")
POLL_SECONDS = 0.05


def is_running(query: "StreamingQuery") -> bool:
    """Whether it still works: a query that was asked to end is not active any more, and finishes its batch."""
    execution = _execution(query)
    return bool(execution.queryExecutionThread().isAlive()) if execution is not None else query.isActive


def ask_to_end(query: "StreamingQuery") -> None:
    """Have it begin no further batch; ``is_running`` says when the one at hand is done.

    Spark looks at a query's state before each batch, and only there; its ``stop`` sets that state, and interrupts the
    thread. We set it, and leave the thread alone until it waits for its next trigger. Where the query lives behind
    Spark Connect its state is out of reach: it is stopped once it waits for data, or at once if it does not within ten
    seconds.
    """
    execution = _execution(query)
    if execution is not None:
        execution.state().set(_terminated(query))
        return
    deadline = time.monotonic() + 10
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    query.stop()


def stop_if_idle(query: "StreamingQuery") -> None:
    """End one that was asked to and has no batch at hand: it may sleep through a long trigger interval otherwise.

    Twice idle, as Spark looks at the state a moment before it says that a batch is at hand.
    """
    for _ in range(2):
        if query.status["isTriggerActive"]:
            return
        time.sleep(POLL_SECONDS)
    query.stop()


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
