"""Reading, writing and mirroring in a session of another kind, as a program: on a cluster, or through Spark Connect.

``python -m compat_tests.spark.elsewhere KIND SOURCE_BOOTSTRAP TARGET_BOOTSTRAP TOPIC FOLDER``; KIND is a master, or
``connect``. Prints its results as a line of JSON. Knows nothing of the topic's content.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from barnabas.pipelines.jobs import run_job
from barnabas.pipelines.jobs.mirror import MirrorOptions
from barnabas.pipelines.session import spark_session

SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def session(kind: str, folder: Path) -> SparkSession:
    configs = {**SETTINGS, "spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder)}
    if kind == "connect":
        os.environ["SPARK_REMOTE"] = "local[2]"  # a server in another process, used like a remote one
        os.environ["SPARK_TESTING"] = "0"  # this config, even empty, lets the server choose its port
        return spark_session("elsewhere", configs=configs)
    return spark_session("elsewhere", master=kind, configs=configs)


def read_and_write(spark: SparkSession, bootstrap: str, topic: str) -> int:
    """Copies the topic as a batch to another one; returns the number of rows."""
    options = {"kafka.bootstrap.servers": bootstrap}
    frame = spark.read.format("barnabas").options(**options, subscribe=topic, includeHeaders="true").load()
    rows = frame.select("key", "value", "headers", "partition", "timestamp")
    rows.write.format("barnabas").options(**options, topic=f"{topic}-batch").mode("append").save()
    return frame.count()


def stream(spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> list[int]:
    """Copies the topic as a stream, exactly once, to another one; returns the rows of each micro-batch."""
    options = {"kafka.bootstrap.servers": bootstrap}
    read = spark.readStream.format("barnabas").options(**options, subscribe=topic, includeHeaders="true")
    frame = read.option("startingOffsets", "earliest").load()
    query = (
        frame.select("key", "value", "headers", "partition", "timestamp")
        .writeStream.format("barnabas")
        .options(**options, topic=f"{topic}-stream", delivery="exactly-once")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    return [each.numInputRows for each in query.recentProgress]


def main(kind: str, source: str, target: str, topic: str, folder: str) -> None:
    spark = session(kind, Path(folder))
    rows = read_and_write(spark, source, topic)
    batches = stream(spark, source, topic, Path(folder))
    options = MirrorOptions(source=source, target=target, topics=(topic,), sync_groups=False)
    mirrored = run_job(options, spark=spark, once=True, checkpoint=str(Path(folder) / "mirror")).rows
    found = json.dumps({"rows": rows, "streamed": sum(batches), "mirrored": mirrored, "where": workers(spark, kind)})
    sys.stdout.write(found + "\n")
    spark.stop()


def workers(spark: SparkSession, kind: str) -> int:
    """Returns the number of executors beside the driver."""
    if kind == "connect":
        return 0
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


if __name__ == "__main__":
    main(*sys.argv[1:])
