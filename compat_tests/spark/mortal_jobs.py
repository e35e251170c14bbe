"""An export, or a backfill, that is killed at a given step; run in its own process.

The jobs themselves are unchanged: a step is wrapped, and the process is killed before it.
"""

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from barnabas.pipelines.client.transactional import Transaction
from barnabas.pipelines.jobs import run_job
from barnabas.pipelines.jobs.backfill import BackfillOptions
from barnabas.pipelines.jobs.backfilling import writing
from barnabas.pipelines.jobs.export import ExportOptions
from barnabas.pipelines.jobs.exporting.files import LocalFiles
from barnabas.pipelines.session import spark_session
from compat_tests.spark.conftest import SETTINGS
from compat_tests.spark.mortal import kill_driver

EXPORT_BATCH = 700


def export_options(bootstrap: str, topic: str, to: str) -> ExportOptions:
    """Exports several batches, whose files are merged at once."""
    return ExportOptions(
        topics=(topic,),
        to=to,
        bootstrap_servers=bootstrap,
        max_offsets_per_batch=EXPORT_BATCH,
        publish_seconds=0,
        partition_by="none",
    )


def backfill_options(bootstrap: str, source: str, topic: str) -> BackfillOptions:
    """Writes several batches, each of several transactions."""
    return BackfillOptions(
        source=source,
        to_topic=topic,
        bootstrap_servers=bootstrap,
        batch_records=1_000,
        client={"batch.size": "1000", "delivery.timeout.ms": "60000"},
    )


def watched(method: Callable[..., Any], is_time: Callable[..., bool]) -> Callable[..., Any]:
    """Returns the method, with a kill of the process in a given call."""

    def called(self: Any, *given: Any) -> Any:
        if is_time(*given):
            os.kill(os.getpid(), signal.SIGKILL)
        return method(self, *given)

    return called


class MortalWrite(writing.Write):
    """The task of a backfill, with small transactions, in the third of which Spark is killed."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        commits = itertools.count()
        commit = Transaction.commit_offsets

        def last(transaction: Transaction, *given: Any) -> None:
            if next(commits) == 2:
                transaction.writer.flush()  # the topic has uncommitted records
                kill_driver()
            commit(transaction, *given)

        Transaction.commit_offsets = last
        writing.TRANSACTION_BYTES = 1
        yield from super().__call__(batches)


def main(step: str, bootstrap: str, source: str, target: str) -> None:
    """`step` is the moment of the kill: ``batch`` or ``merge`` of an export, ``transaction`` of a backfill."""
    small = {"spark.sql.execution.arrow.maxRecordsPerBatch": "40"}
    spark = spark_session("mortal", master="local[2]", configs={**SETTINGS, **small})
    moves = itertools.count()
    if step == "batch":  # the second batch is decided, and some of its files are in place
        LocalFiles.move = watched(LocalFiles.move, lambda _, to: "/held/0000000001" in hidden(to) and next(moves) == 2)
    elif step == "merge":  # the merged file is visible, and its parts are still there
        LocalFiles.delete = watched(LocalFiles.delete, lambda path: path.endswith(".part") and next(moves) == 1)
    if step != "transaction":
        run_job(export_options(bootstrap, source, target), spark=spark, once=True)
        return
    writing.Write = MortalWrite
    run_job(backfill_options(bootstrap, source, target), spark=spark)


def hidden(path: str) -> str:
    """Returns the path without the directories of its leaf."""
    folder, _, name = path.rpartition("/")
    return f"{folder.partition('/held')[0]}/held/{name}"


if __name__ == "__main__":
    from compat_tests.spark import mortal_jobs  # by its name, by which workers import it

    mortal_jobs.main(*sys.argv[1:])
