"""The jobs: export, import, backfill, mirror, stream; each a class with a class of options, and a command.

Know nothing of the command line. ``run_job(ExportOptions(...), once=True)`` runs one from a program.
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
    """A job by the name of its command."""

    module: str
    job: str  #: the class; its options are in the class of this name and ``Options``, in the same module
    help: str

    def options_class(self) -> type:
        """The class of its options; imports nothing of Spark."""
        declared = getattr(importlib.import_module(self.module), f"{self.job}Options")
        assert isinstance(declared, type)
        return declared

    def make(self, options: object) -> "Job | BatchJob":
        """The job with these options."""
        job: Job | BatchJob = getattr(importlib.import_module(self.module), self.job)(options)
        return job


JOBS = {
    "export": Entry(f"{__name__}.export", "Export", "Topics to Parquet, Delta, CSV, JSON or a database."),
    "import": Entry(f"{__name__}.import_", "Import", "Files as they appear, or a query to a database, to a topic."),
    "backfill": Entry(f"{__name__}.backfill", "Backfill", "An export back to a topic, as it was."),
    "mirror": Entry(f"{__name__}.mirror", "Mirror", "Topics of one cluster to another, with their groups' offsets."),
    "stream": Entry(f"{__name__}.stream", "Stream", "Topics through a function of yours, or SQL, to a topic."),
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
    """Run the job that these options are of, in this session, the active one, or one of its own.

    ``once``: for all that is there; else until ``stop`` is set. ``checkpoint``: the directory that it goes on from;
    some jobs have one beside what they write. ``report`` is called with a Progress for each batch.

    Raises:
        ValueError: an option is wrong, or a checkpoint is needed and not given.
        JobFailed: it ended by itself; the message is the cause.
    """
    from barnabas.pipelines.jobs.running import checkpoint_of, run

    name = next((name for name, entry in JOBS.items() if f"{entry.job}Options" == type(options).__name__), None)
    if name is None:
        raise ValueError(f"{type(options).__name__} is not a job's options: {', '.join(JOBS)} are the jobs")
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
    """The session that is active, or one for this job; `configs` go before its own. Spark logs to `log`.

    Raises NoJava.
    """
    from barnabas.pipelines.session import spark_session, start_java

    wanted = {**job.configs(), **({"spark.master": master} if master else {}), **(configs or {})}
    start_java(wanted, log=log)
    return spark_session(f"barnabas {job.name}", master=wanted.get("spark.master"), configs=wanted)
