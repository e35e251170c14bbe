"""The frame of the jobs: starts one, reports its batches, ends it between two of them, and says why it failed.

Knows nothing of what any job does, nor of the command line.
"""

import abc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.pipelines.jobs.causes import cause_of
from barnabas.pipelines.jobs.progress import Following, Progress, Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS = 0.1
ENDING_SECONDS = 0.01


class JobFailed(Exception):
    """A job ended by itself; the message is the cause, without stacks."""


class Outcome(NamedTuple):
    """What a job did."""

    rows: int
    batches: int
    stopped: bool  #: it was told to end, and had not come to its end


class Work(abc.ABC):
    """What every job tells the frame.

    Bad options are a ValueError of the options' class or of the job's, whose message names the option.
    """

    name: str  #: as the command is called

    def configs(self) -> Mapping[str, str]:
        """Configs of Spark that the session has to be started with, such as ``spark.jars``."""
        return {}

    def checkpoint_beside(self) -> str | None:
        """Where its checkpoint is if nobody says; None if somebody must, as there is no place that belongs to it."""
        return None


class Job(Work):
    """A job of streaming queries."""

    @abc.abstractmethod
    def start(self, spark: "SparkSession", *, once: bool, checkpoint: str) -> Sequence["StreamingQuery"]:
        """Start its queries.

        ``once``: with ``availableNow``, for all that is there; else they run until they are ended. ``checkpoint`` is
        a directory for this job alone; a job of several queries gives each one below it.
        """

    def look(self) -> None:
        """Called again and again while its queries run: for what is due though there is no batch to do it after."""

    def close(self) -> None:
        """Called when its queries have ended, or when they could not start: to stop threads, to tidy up."""


class BatchJob(Work):
    """A job that is no streaming query, and does its work on the calling thread."""

    @abc.abstractmethod
    def work(
        self, spark: "SparkSession", *, once: bool, checkpoint: str, report: Report, stop: threading.Event
    ) -> None:
        """Do it, and report each batch once it is safe; return between two batches when ``stop`` is set.

        ``checkpoint`` as in Job: what a later run goes on from is kept there.
        """


def checkpoint_of(job: Work, given: str | None) -> str:
    """The job's checkpoint: the one that was given, or the one beside what it writes.

    Raises:
        ValueError: there is neither.
    """
    found = given or job.checkpoint_beside()
    if found is None:
        raise ValueError(
            "checkpoint is missing: a directory in which the job keeps how far it has come, to go on from there, "
            f"such as checkpoints/{job.name}"
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
    """Run the job until it has come to its end (``once``), or until `stop` is set and the batch at hand is done.

    Raises:
        JobFailed: a query failed; the others of the job have been ended.
    """
    stop = stop or threading.Event()
    count = _Count(report)
    try:
        if isinstance(job, BatchJob):
            job.work(spark, once=once, checkpoint=checkpoint, report=count, stop=stop)
            return Outcome(count.rows, count.batches, stop.is_set())
        try:
            queries = job.start(spark, once=once, checkpoint=checkpoint)
            try:
                stopped = _follow(job, queries, count, stop)
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
    """Leave no query running when the caller's report has raised, or Ctrl-C in a notebook: the job is closed next."""
    from barnabas.pipelines.jobs.stopping import is_running

    for query in queries:
        if is_running(query):
            query.stop()


class _Count:
    """Counts what it passes on."""

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self.rows = self.batches = 0

    def __call__(self, progress: Progress) -> None:
        self.rows += progress.rows
        self.batches += 1
        if self._report is not None:
            self._report(progress)


def _follow(
    job: Job,
    queries: Sequence["StreamingQuery"],
    report: Report,
    stop: threading.Event,
    pause: Callable[[float], object] = time.sleep,
) -> bool:
    """Whether they were ended before they had come to their end."""
    from barnabas.pipelines.jobs.stopping import Ending, is_running

    following = [Following(query, job.name, report) for query in queries]
    endings: dict[StreamingQuery, Ending] = {}
    while True:
        running = [query for query in queries if is_running(query)]
        for each in following:
            each.look()
        failed = next((query for query in queries if query not in running and query.exception() is not None), None)
        if not running:
            break
        if stop.is_set() or failed is not None:
            for query in running:
                endings.setdefault(query, Ending(query)).step()
            pause(ENDING_SECONDS)
        else:
            job.look()
            stop.wait(LOOK_SECONDS)
    if failed is not None:
        raise JobFailed(cause_of(failed.exception() or "")) from failed.exception()
    return bool(endings)


def _is_sparks(error: BaseException) -> bool:
    return type(error).__module__.startswith("pyspark.")
