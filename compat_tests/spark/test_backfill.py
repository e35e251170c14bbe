"""Exports written back to topics: all fields of all records, in order, once, while processes are killed."""

import datetime
import secrets
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from barnabas.pipelines.jobs import run_job
from barnabas.pipelines.jobs.backfill import BackfillOptions
from barnabas.pipelines.jobs.export import ExportOptions
from barnabas.pipelines.jobs.progress import Progress
from barnabas.pipelines.jobs.running import JobFailed
from compat_tests.spark.exported import run_mortal, visible
from compat_tests.spark.generated import Made, by_partition, made, renamed, send
from compat_tests.spark.mortal_jobs import backfill_options
from compat_tests.spark.topics import committed, create

PARTITIONS = 4

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))),
    ]
)


def put(directory: Path, records: list[Made], *, without: str = "", hole: int = 1) -> None:
    """Makes an export of these records, as by another program: two files, without each `hole`-th offset."""
    rows = [
        {
            **record._asdict(),
            "offset": offset * hole,
            "timestamp": datetime.datetime.fromtimestamp(0, datetime.UTC)
            + datetime.timedelta(milliseconds=record.timestamp),
            "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        }
        for its in by_partition(records, PARTITIONS)
        for offset, record in enumerate(its)
    ]
    directory.mkdir(exist_ok=True)
    for number, part in enumerate((rows[1::2], rows[::2])):
        table = pa.Table.from_pylist(part, schema=SCHEMA)
        pyarrow.parquet.write_table(table.drop_columns(without) if without else table, directory / f"{number}.parquet")


@pytest.fixture(scope="module")
def records() -> list[Made]:
    return made(f"backfilled-{secrets.token_hex(4)}", 2_000, partitions=PARTITIONS)


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_an_export_is_written_back_unchanged(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path, format: str
) -> None:
    sent = made(topic, 1_200, partitions=3)
    create(bootstrap, topic, partitions=PARTITIONS)  # one of them stays empty
    send(bootstrap, sent)
    run_job(
        ExportOptions(
            topics=(topic,), to=str(tmp_path), format=format, bootstrap_servers=bootstrap, max_offsets_per_batch=500
        ),
        spark=spark,
        once=True,
    )
    target = f"{topic}-again"
    options = BackfillOptions(source=str(tmp_path), to_topic=target, bootstrap_servers=bootstrap, batch_records=500)
    results: list[Progress] = []
    outcome = run_job(options, spark=spark, report=results.append)
    assert (outcome.rows, outcome.batches, results[-1].lag) == (1_200, 3, 0)
    wanted = by_partition(renamed(sent, target), PARTITIONS)
    assert committed(bootstrap, target) == wanted
    assert run_job(options, spark=spark).rows == 0
    assert committed(bootstrap, target) == wanted


@pytest.mark.xdist_group("spark apart")
@pytest.mark.long
def test_a_backfill_that_is_killed_and_one_that_is_stopped(
    spark: SparkSession, bootstrap: str, topic: str, records: list[Made], tmp_path: Path
) -> None:
    put(tmp_path, records, hole=3)
    run_mortal("transaction", bootstrap, str(tmp_path), topic)
    wanted = by_partition(renamed(records, topic), PARTITIONS)

    stop = threading.Event()
    options = backfill_options(bootstrap, str(tmp_path), topic)
    outcome = run_job(options, spark=spark, stop=stop, report=lambda progress: stop.set())
    assert (outcome.batches, outcome.stopped) == (1, True)
    part = committed(bootstrap, topic)
    assert [its == wanted[number][: len(its)] for number, its in enumerate(part)] == [True] * PARTITIONS
    assert 0 < sum(map(len, part)) < len(records)

    with pytest.raises(ValueError, match=r"ending_offsets is .* when this backfill began"):
        changed = BackfillOptions(
            source=str(tmp_path), to_topic=topic, bootstrap_servers=bootstrap, ending_offsets="{}"
        )
        run_job(changed, spark=spark, checkpoint=options.checkpoint_beside())
    assert run_job(options, spark=spark).rows == len(records)
    assert committed(bootstrap, topic) == wanted


def test_a_range_of_times_and_offsets(
    spark: SparkSession, bootstrap: str, topic: str, records: list[Made], tmp_path: Path
) -> None:
    put(tmp_path, records)
    times = sorted(record.timestamp for record in records)
    options = BackfillOptions(
        source=str(tmp_path),
        to_topic=topic,
        bootstrap_servers=bootstrap,
        starting_timestamp=str(times[500]),
        ending_timestamp=str(times[1500]),
        starting_offsets=f'{{"{records[0].topic}": {{"0": 100}}}}',
        ending_offsets=f'{{"{records[0].topic}": {{"1": 200}}}}',
    )
    run_job(options, spark=spark)
    its = by_partition(renamed(records, topic), PARTITIONS)
    its[0], its[1] = its[0][100:], its[1][:200]
    wanted = [[record for record in one if times[500] <= record.timestamp < times[1500]] for one in its]
    assert committed(bootstrap, topic) == wanted


def test_what_cannot_be_written_back_unchanged_is_refused(
    spark: SparkSession, bootstrap: str, topic: str, records: list[Made], tmp_path: Path
) -> None:
    def backfill(source: str, **said: object) -> None:
        options = {"source": str(tmp_path / source), "to_topic": topic, "bootstrap_servers": bootstrap, **said}
        run_job(BackfillOptions(**options), spark=spark)

    put(tmp_path / "whole", records[:100])
    put(tmp_path / "lacking", records[:100], without="headers")
    with pytest.raises(ValueError, match="lacks the column headers: export with with_metadata"):
        backfill("lacking")
    text = pa.Table.from_pylist([{"value": 1}])
    (tmp_path / "text").mkdir()
    pyarrow.parquet.write_table(text, tmp_path / "text" / "1.parquet")
    with pytest.raises(ValueError, match="lacks the columns topic, partition, offset, timestamp, key, headers"):
        backfill("text")
    with pytest.raises(ValueError, match="there is no Parquet in"):
        backfill("nowhere")
    with pytest.raises(ValueError, match="holds no record"):
        backfill("whole", topics=("another",))
    assert topic not in AdminClient({"bootstrap.servers": bootstrap}).list_topics().topics

    twice = tmp_path / "twice"
    put(twice, records[:100])
    visible(twice)[0].rename(twice / "2.parquet")
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(twice / "2.parquet").slice(5, 1), twice / "3.parquet")
    with pytest.raises(JobFailed, match=r"offset \d+ of .* is in the export twice"):
        backfill("twice", to_topic=f"{topic}-twice")

    create(bootstrap, f"{topic}-short", partitions=PARTITIONS, retention_ms="60000")
    with pytest.raises(ValueError, match=r"retention\.ms is 60000, but the oldest record is of"):
        backfill("whole", to_topic=f"{topic}-short")
    create(bootstrap, f"{topic}-narrow", partitions=2)
    with pytest.raises(ValueError, match="has 2 partitions, but the export is of 4"):
        backfill("whole", to_topic=f"{topic}-narrow")
