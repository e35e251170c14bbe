"""The jobs: export, import, backfill, mirror and stream. Each has a class, a class of options, and a command.

Knows nothing of the command line. ``run_job(ExportOptions(...), once=True)`` runs a job from a program.
"""

import importlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.pipelines.jobs.progress import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.pipelines.jobs.running import BatchJob, Job, Outcome


class Entry(NamedTuple):
    """A job, listed by the name of its command."""

    module: str
    job: str  #: the name of its class; the class of its options adds ``Options`` and is in the same module
    help: str

    def options_class(self) -> type:
        """Returns the class of its options. Does not import Spark."""
        declared = getattr(importlib.import_module(self.module), f"{self.job}Options")
        assert isinstance(declared, type)
        return declared

    def make(self, options: object) -> "Job | BatchJob":
        """Creates the job with these options."""
        job: Job | BatchJob = getattr(importlib.import_module(self.module), self.job)(options)
        return job


JOBS = {
    "export": Entry(f"{__name__}.export", "Export", "Write topics to Parquet, Delta, CSV, JSON or a database."),
    "import": Entry(f"{__name__}.import_", "Import", "Write new files, or the rows of a database query, to a topic."),
    "backfill": Entry(f"{__name__}.backfill", "Backfill", "Write an export back to a topic, unchanged."),
    "mirror": Entry(
        f"{__name__}.mirror", "Mirror", "Copy topics to another cluster, with the offsets of their groups."
    ),
    "stream": Entry(
        f"{__name__}.stream", "Stream", "Transform topics by a Python function or SQL, and write the result to a topic."
    ),
}


def run_job(
    options: object,
    *,
    checkpoint: str | None = None,
    once: bool = False,
    spark: "SparkSession | None" = None,
    report: Report | None = None,
    stop: threading.Event | None = None,
) -> "Outcome":
    """Runs the job that these options belong to.

    :param checkpoint: the directory that the job continues from; jobs that write files have a default.
    :param once: process the existing records, then end; otherwise run until `stop` is set.
    :param spark: the session; by default the active one, or a new one.
    :param report: called with a Progress for each batch.
    :raises ValueError: an option is wrong, or the job needs a checkpoint and got none.
    :raises JobFailed: the job failed; the message is the cause.
    """
    from barnabas.pipelines.jobs.running import checkpoint_of, run

    name = next((name for name, entry in JOBS.items() if f"{entry.job}Options" == type(options).__name__), None)
    if name is None:
        raise ValueError(f"{type(options).__name__} is not the options of a job; the jobs are {', '.join(JOBS)}")
    job = JOBS[name].make(options)
    where = checkpoint_of(job, checkpoint)
    return run(job, spark or session_of(job), checkpoint=where, once=once, report=report, stop=stop)


def session_of(
    job: "Job | BatchJob",
    *,
    master: str | None = None,
    configs: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> "SparkSession":
    """Returns the active session, or starts one for this job.

    :param configs: Spark configs, which override the job's.
    :param log: the file that Spark logs to.
    :raises NoJava: Spark cannot start, as there is no Java.
    """
    from barnabas.pipelines.session import spark_session, start_java

    wanted = {**job.configs(), **({"spark.master": master} if master else {}), **(configs or {})}
    start_java(wanted, log=log)
    return spark_session(f"barnabas {job.name}", master=wanted.get("spark.master"), configs=wanted)
