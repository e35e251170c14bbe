"""A query that copies a topic exactly once, and is killed at a given moment; run in its own process.

The sink itself is unchanged: its calls are wrapped, and the process is killed before or after one.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from barnabas.pipelines.options import STREAM_WRITE, write_options
from barnabas.pipelines.session import spark_session
from barnabas.pipelines.sink import BATCH_ID, StreamSink, Written
from barnabas.pipelines.source import BarnabasDataSource
from compat_tests.spark.conftest import SETTINGS

PLAN = "BARNABAS_TEST_PLAN"
"""The event in each batch: ``{"commit": 1}`` and so on."""

PATIENCE_SECONDS = 400.0


def due(event: str, batch: int) -> bool:
    return json.loads(os.environ[PLAN]).get(event) == batch


def kill_driver() -> None:
    """Returns the Java process of this worker, which in local mode is all of Spark."""
    for process in psutil.Process().parents():
        if process.name() == "java":
            process.kill()
            time.sleep(PATIENCE_SECONDS)  # until this worker is killed as well
    raise RuntimeError("there is no driver to kill")


def pause() -> None:
    """Notifies the test in the middle of a task, and waits until the test continues it."""
    folder = Path(json.loads(os.environ[PLAN])["folder"])
    (folder / "paused").touch()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (folder / "resumed").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class MortalSink(StreamSink):
    """The sink, with the events."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty(BATCH_ID) or 0)
        attempt = context.attemptNumber()
        written = super().write(self._interrupted(iterator, batch, context.partitionId(), attempt))
        if due("fail", batch) and attempt == 0:
            raise RuntimeError("this task fails once, after all is written")
        return written

    def _interrupted(
        self, rows: Iterator[pa.RecordBatch], batch: int, task: int, attempt: int
    ) -> Iterator[pa.RecordBatch]:
        for number, those in enumerate(rows):
            if number == 2 and task == 0 and due("worker", batch) and attempt == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if number == 2 and task == 0 and due("pause", batch):
                pause()
            yield those

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        if due("commit", batchId):
            kill_driver()


class Mortal(BarnabasDataSource):
    """The data source with that sink."""

    @classmethod
    def name(cls) -> str:
        return "mortal"

    def streamWriter(self, schema: StructType, overwrite: bool) -> MortalSink:
        return MortalSink(write_options(self.options, STREAM_WRITE), schema)


def main(bootstrap: str, source: str, target: str, checkpoint: str) -> None:
    """Copies the existing records, in batches of a few hundred, ten at a time to the sink."""
    small = {"spark.sql.execution.arrow.maxRecordsPerBatch": "10"}
    spark = spark_session("mortal", master="local[2,4]", configs={**SETTINGS, **small})
    spark.dataSource.register(Mortal)
    servers = {"kafka.bootstrap.servers": bootstrap}
    rows = (
        spark.readStream.format("barnabas")
        .options(**servers, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="800")
        .option("includeHeaders", "true")
        .load()
    )
    query = (
        rows.writeStream.format("mortal")
        .options(**servers, topic=target, delivery="exactly-once", checkpointLocation=checkpoint)
        .option("kafka.linger.ms", "0")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    from compat_tests.spark import mortal  # by its name, by which workers import it

    mortal.main(*sys.argv[1:])
