"""Runs jobs: starts their queries, reports their batches, stops them between two batches, and raises why they failed.

Knows nothing of what a job does, nor of the command line.
"""

import abc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.pipelines.jobs.causes import cause_of
from barnabas.pipelines.jobs.progress import Progress, ProgressReporter, Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS = 0.1
STOPPING_SECONDS = 0.01


class JobFailed(Exception):
    """A job failed; the message is the cause, without stack traces."""


class Outcome(NamedTuple):
    """The result of a run."""

    rows: int
    batches: int
    stopped: bool  #: the run was stopped before its end


class AnyJob(abc.ABC):
    """The common part of all jobs.

    The constructor, or that of the options, raises ValueError for wrong options; its message names the option.
    """

    name: str  #: of the command

    def configs(self) -> Mapping[str, str]:
        """Returns the Spark configs that the session must be started with, such as ``spark.jars``."""
        return {}

    def checkpoint_beside(self) -> str | None:
        """Returns the default checkpoint, or None if the job has none and needs one to be given."""
        return None


class Job(AnyJob):
    """A job of streaming queries."""

    @abc.abstractmethod
    def start(self, spark: "SparkSession", *, once: bool, checkpoint: str) -> Sequence["StreamingQuery"]:
        """Starts the job's queries.

        :param once: use the trigger ``availableNow``, which ends after the existing records; otherwise the queries run
            until they are stopped.
        :param checkpoint: the directory of this job; with several queries each has its own directory below it.
        """

    def tick(self) -> None:
        """Does periodic work without a batch. Called periodically while the queries run."""

    def close(self) -> None:
        """Stops threads and cleans up. Called when the queries have ended, or could not start."""


class BatchJob(AnyJob):
    """A job without streaming queries, which does its work on the calling thread."""

    @abc.abstractmethod
    def work(
        self, spark: "SparkSession", *, once: bool, checkpoint: str, report: Report, stop: threading.Event
    ) -> None:
        """Does the work. Reports each batch once it is durable, and returns between two batches when `stop` is set.

        :param checkpoint: the directory that keeps the job's progress for later runs.
        """


def checkpoint_of(job: AnyJob, given: str | None) -> str:
    """Returns the given checkpoint or the job's default.

    :raises ValueError: there is neither.
    """
    found = given or job.checkpoint_beside()
    if found is None:
        raise ValueError(
            "checkpoint is missing: give the directory in which the job keeps its progress, such as "
            f"checkpoints/{job.name}"
        )
    return found


def run(
    job: Job | BatchJob,
    spark: "SparkSession",
    *,
    checkpoint: str,
    once: bool = False,
    report: Report | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Runs the job to its end (``once``), or until `stop` is set and the current batch is complete.

    :raises JobFailed: a query failed; the job's other queries have been stopped.
    """
    stop = stop or threading.Event()
    count = _Counter(report)
    try:
        if isinstance(job, BatchJob):
            job.work(spark, once=once, checkpoint=checkpoint, report=count, stop=stop)
            return Outcome(count.rows, count.batches, stop.is_set())
        try:
            queries = job.start(spark, once=once, checkpoint=checkpoint)
            try:
                stopped = _wait(job, queries, count, stop)
            finally:
                _stop_those_left(queries)
        finally:
            job.close()
        return Outcome(count.rows, count.batches, stopped)
    except JobFailed:
        raise
    except Exception as error:
        if isinstance(error, ValueError) and not _is_sparks(error):
            raise
        raise JobFailed(cause_of(error)) from error


def _stop_those_left(queries: Sequence["StreamingQuery"]) -> None:
    """Stops queries that still run because the report or Ctrl-C in a notebook raised. The job is closed next."""
    from barnabas.pipelines.jobs.stopping import is_running

    for query in queries:
        if is_running(query):
            query.stop()


class _Counter:
    """Passes reports on, and counts their rows and batches."""

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self.rows = self.batches = 0

    def __call__(self, progress: Progress) -> None:
        self.rows += progress.rows
        self.batches += 1
        if self._report is not None:
            self._report(progress)


def _wait(
    job: Job,
    queries: Sequence["StreamingQuery"],
    report: Report,
    stop: threading.Event,
    pause: Callable[[float], object] = time.sleep,
) -> bool:
    """Waits for the end of the queries; returns whether they were stopped before it.

    :raises JobFailed: a query failed.
    """
    from barnabas.pipelines.jobs.stopping import Stopping, is_running

    reporters = [ProgressReporter(query, job.name, report) for query in queries]
    stopping: dict[StreamingQuery, Stopping] = {}
    while True:
        running = [query for query in queries if is_running(query)]
        for each in reporters:
            each.poll()
        failed = next((query for query in queries if query not in running and query.exception() is not None), None)
        if not running:
            break
        if stop.is_set() or failed is not None:
            for query in running:
                stopping.setdefault(query, Stopping(query)).step()
            pause(STOPPING_SECONDS)
        else:
            job.tick()
            stop.wait(POLL_SECONDS)
    if failed is not None:
        raise JobFailed(cause_of(failed.exception() or "")) from failed.exception()
    return bool(stopping)


def _is_sparks(error: BaseException) -> bool:
    """Returns whether PySpark defines the error; some of its errors are ValueErrors too."""
    return type(error).__module__.startswith("pyspark.")
