"""Topics exported in every format, read by other readers, and compared row by row; and exports that are killed."""

import base64
import csv
import datetime
import gzip
import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from barnabas.pipelines.jobs import run_job
from barnabas.pipelines.jobs.export import Export, ExportOptions
from barnabas.pipelines.jobs.exporting import to_files
from barnabas.pipelines.jobs.exporting.files import Files, HadoopFiles, LocalFiles
from barnabas.pipelines.jobs.running import JobFailed
from compat_tests.spark.exported import milliseconds, parquet, rows, run_mortal, visible
from compat_tests.spark.generated import Made, by_partition, made, send
from compat_tests.spark.mortal_jobs import EXPORT_BATCH, export_options
from compat_tests.spark.topics import create

PARTITIONS = 4


class Filled(NamedTuple):
    """A topic, and the records sent to it."""

    name: str
    records: list[Made]

    @property
    def by_partition(self) -> list[list[Made]]:
        return by_partition(self.records, PARTITIONS)


def fill(bootstrap: str, name: str, count: int = 1_500) -> Filled:
    create(bootstrap, name, partitions=PARTITIONS)
    records = made(name, count, partitions=PARTITIONS)
    send(bootstrap, records)
    return Filled(name, records)


@pytest.fixture(scope="module")
def filled(bootstrap: str) -> Filled:
    return fill(bootstrap, f"exported-{secrets.token_hex(4)}")


def send_json(bootstrap: str, topic: str, values: Sequence[Any], start_ms: int = 1_700_000_000_000) -> None:
    create(bootstrap, topic, partitions=1)
    send(
        bootstrap,
        [Made(topic, 0, b"k%d" % n, json.dumps(value).encode(), (), start_ms + n) for n, value in enumerate(values)],
    )


def test_parquet_holds_all_that_the_topics_held(
    spark: SparkSession, bootstrap: str, filled: Filled, name: str, tmp_path: Path
) -> None:
    other = fill(bootstrap, f"2026-{secrets.token_hex(4)}", 400)
    to = tmp_path / "with space"
    options = ExportOptions(
        topics=(filled.name, other.name),
        to=str(to),
        bootstrap_servers=bootstrap,
        max_offsets_per_batch=800,
        commit_group=name,
    )
    outcome = run_job(options, spark=spark, once=True)
    assert (outcome.rows, outcome.batches >= 2) == (1_900, True)
    assert rows(parquet(to), filled.name, PARTITIONS) == filled.by_partition
    assert rows(parquet(to), other.name, PARTITIONS) == other.by_partition
    days = {
        (record.topic, datetime.datetime.fromtimestamp(record.timestamp / 1000, datetime.UTC).date().isoformat())
        for record in [*filled.records, *other.records]
    }
    leaves = [path.parent.relative_to(to).as_posix() for path in visible(to)]
    assert leaves == sorted(f"topic={topic}/date={day}" for topic, day in days)  # small files of batches are merged

    before = {path: path.stat() for path in visible(to)}
    late = [record._replace(value=b"late", timestamp=1_700_000_000_000) for record in filled.records[:9]]
    send(bootstrap, late)
    stop = threading.Event()
    outcome = run_job(replace(options, trigger_seconds=0), spark=spark, stop=stop, report=lambda _: stop.set())
    assert (outcome.rows, outcome.stopped) == (9, True)
    assert {path: path.stat() for path in visible(to)}.items() >= before.items()  # visible files are unchanged
    whole = by_partition([*filled.records, *late], PARTITIONS)
    assert rows(parquet(to), filled.name, PARTITIONS) == whole
    filled.records.extend(late)

    with pytest.raises(JobFailed, match=rf"holds an export of .*{filled.name}.* with another checkpoint"):
        run_job(options, spark=spark, once=True, checkpoint=str(tmp_path / "another"))


def test_delta(spark: SparkSession, bootstrap: str, filled: Filled, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    options = ExportOptions(
        topics=(filled.name,), to=str(tmp_path), format="delta", bootstrap_servers=bootstrap, max_offsets_per_batch=800
    )
    run_job(options, spark=spark, once=True)
    table = DeltaTable(tmp_path)
    assert rows(table.to_pyarrow_table(), filled.name, PARTITIONS) == filled.by_partition
    days = {path.parent for path in map(Path, table.file_uris())}
    assert len(table.file_uris()) == len(days)
    (query,) = [path.name for path in (tmp_path / "_barnabas").iterdir() if path.name != "checkpoint"]
    newest = table.transaction_version(query)
    assert newest >= 1

    # As after a kill between our commit and Spark's: Spark repeats the last batch
    for kept in (tmp_path / "_barnabas" / "checkpoint" / "commits").glob(f"*{newest}*"):
        kept.unlink()
    version = table.version()
    run_job(options, spark=spark, once=True)
    assert DeltaTable(tmp_path).version() == version
    found = DeltaTable(tmp_path).to_pyarrow_table(filters=[("partition", "=", 1), ("offset", "<", 5)])
    assert found.num_rows == 5


def test_json_and_csv(spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path) -> None:
    values = [{"id": n, "name": f' a "{n}",\nb ' if n % 3 else None, "tags": ["x", "y"][: n % 3]} for n in range(50)]
    send_json(bootstrap, topic, values)
    said = {
        "topics": (topic,),
        "bootstrap_servers": bootstrap,
        "value_format": "json,schema=id BIGINT, name STRING, tags ARRAY<STRING>",
        "with_metadata": True,
        "max_offsets_per_batch": 30,
    }
    run_job(ExportOptions(to=str(tmp_path / "json"), format="json", **said), spark=spark, once=True)
    lines = [json.loads(line) for path in visible(tmp_path / "json") for line in path.read_text().splitlines()]
    assert [(line["offset"], line["key"], line["value"]) for line in lines] == [
        (n, f"k{n}", value) for n, value in enumerate(values)
    ]
    assert [line["timestamp"] for line in lines[:2]] == ["2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:20.001000Z"]

    run_job(ExportOptions(to=str(tmp_path / "csv"), format="csv", partition_by="hour", **said), spark=spark, once=True)
    (file,) = visible(tmp_path / "csv")
    assert file.parent.relative_to(tmp_path / "csv").as_posix() == "date=2023-11-14/hour=22"
    with file.open(newline="") as stream:
        found = list(csv.DictReader(stream))
    assert [(row["id"], row["name"], json.loads(row["tags"]), row["offset"]) for row in found] == [
        (str(value["id"]), value["name"] or "", value["tags"], str(n)) for n, value in enumerate(values)
    ]


def test_bytes_in_text_are_base64(spark: SparkSession, bootstrap: str, filled: Filled, tmp_path: Path) -> None:
    options = ExportOptions(
        topics=(filled.name,),
        to=str(tmp_path),
        format="csv",
        key_format="raw",
        value_format="raw",
        with_metadata=True,
        compression="gzip",
        partition_by="none",
        bootstrap_servers=bootstrap,
    )
    run_job(options, spark=spark, once=True)
    (file,) = visible(tmp_path)
    with gzip.open(file, "rt", newline="") as stream:
        found = {(int(row["partition"]), int(row["offset"])): row for row in csv.DictReader(stream)}
    for partition, records in enumerate(filled.by_partition):
        for offset, record in enumerate(records):
            row = found.pop((partition, offset))
            assert row["value"] == base64.b64encode(record.value or b"").decode()
            assert row["key"] == base64.b64encode(record.key or b"").decode()
            shown = [
                (each["key"], None if each["value"] is None else base64.b64decode(each["value"]))
                for each in json.loads(row["headers"] or "[]")
            ]
            assert shown == [*record.headers]
    assert not found


def test_a_table_of_a_database(spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path) -> None:
    values = [{"id": n, "price": n / 4, "tags": ["x"]} for n in range(50)]
    send_json(bootstrap, topic, values)
    options = ExportOptions(
        topics=(topic,),
        to=f"jdbc:derby:{tmp_path}/shop;create=true",
        format="jdbc",
        table="orders",
        value_format="json,schema=id BIGINT, price DOUBLE, tags ARRAY<STRING>",
        with_metadata=True,
        metadata_prefix="kafka_",
        bootstrap_servers=bootstrap,
        max_offsets_per_batch=20,
    )
    checkpoint = tmp_path / "checkpoint"
    run_job(options, spark=spark, once=True, checkpoint=str(checkpoint))

    def there() -> list[tuple[Any, ...]]:
        found = spark.read.format("jdbc").options(url=options.to, dbtable="orders").load().orderBy("kafka_offset")
        return [(row.id, row.price, row.tags, row.kafka_key, row.kafka_offset) for row in found.collect()]

    wanted = [(n, n / 4, '["x"]', f"k{n}", n) for n in range(50)]
    assert there() == wanted
    for kept in (checkpoint / "commits").glob("*2*"):  # Spark did not note the last batch as done, and repeats it
        kept.unlink()
    run_job(options, spark=spark, once=True, checkpoint=str(checkpoint))
    assert there() == wanted


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_schema_that_grows(spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path, format: str) -> None:
    send_json(bootstrap, topic, [{"id": n, "name": "old"} for n in range(10)])

    def export(schema: str) -> None:
        run_job(
            ExportOptions(
                topics=(topic,), to=str(tmp_path), format=format, value_format=f"json,schema={schema}", flatten=True,
                with_metadata=False, partition_by="none", bootstrap_servers=bootstrap,
            ),
            spark=spark, once=True,
        )  # fmt: skip

    export("id BIGINT")
    send(bootstrap, [Made(topic, 0, None, b'{"id": %d, "name": "new"}' % n, (), 1_700_000_000_000) for n in (10, 11)])
    export("id BIGINT, name STRING")
    found = spark.read.option("mergeSchema", "true").parquet(*map(str, visible(tmp_path)))
    if format == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
        with pytest.raises(JobFailed, match=r"column id of the table .* has type"):
            send(bootstrap, [Made(topic, 0, None, b'{"id": 12}', (), 1_700_000_000_000)])
            export("id STRING, name STRING")
    else:
        table = [row.asDict() for row in found.orderBy("id").collect()]
    assert table == [{"id": n, "name": None if n < 10 else "new"} for n in range(12)]


def test_errors_of_options(spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path) -> None:
    send_json(bootstrap, topic, [{"id": 1, "offset": 2}])
    said = {"topics": (topic,), "to": str(tmp_path), "bootstrap_servers": bootstrap}
    with pytest.raises(ValueError, match=r"two columns would be called offset.*metadata_prefix"):
        run_job(
            ExportOptions(**said, value_format="json,schema=id BIGINT, offset BIGINT", flatten=True),
            spark=spark,
            once=True,
        )
    with pytest.raises(JobFailed, match=f"value of {topic}-0 at offset 0: "):
        run_job(ExportOptions(**said, value_format="json,schema=id DATE"), spark=spark, once=True)
    assert not visible(tmp_path)


@pytest.mark.parametrize("kind", ["local", "hadoop"])
def test_files_are_the_same_here_and_by_hadoop(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    files: Files = LocalFiles(tmp_path) if kind == "local" else HadoopFiles(spark, f"file:{tmp_path}")
    assert files.list("nowhere") == []
    assert files.read("nowhere/at.all") is None
    files.write("a/b=1/one.json", "Füchse")
    files.write("a/b=1/one.json", "größer")
    assert files.read("a/b=1/one.json") == "größer"
    files.write("a/_hidden/two.json", "{}")
    files.move("a/b=1/one.json", "c/b=1/one.json")
    files.write("c/b=1/two.json", "2")
    assert [(entry.path, entry.size) for entry in files.list("")] == [("c/b=1/one.json", 8), ("c/b=1/two.json", 1)]
    assert abs(files.list("c")[0].modified - (tmp_path / "c/b=1/one.json").stat().st_mtime) < 1
    files.join(["c/b=1/two.json", "c/b=1/one.json"], "c/joined", b"head\n")
    assert (tmp_path / "c/joined").read_bytes() == "head\n2größer".encode()
    with pytest.raises((OSError, Py4JJavaError)):
        files.move("c/nothing", "c/something")
    files.delete("c/b=1")
    files.delete("c/b=1")
    assert [entry.path for entry in files.list("")] == ["c/joined"]


@pytest.mark.xdist_group("spark apart")
@pytest.mark.long
def test_an_export_that_is_killed_in_a_batch_and_in_a_merge(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    filled = fill(bootstrap, topic, 2 * EXPORT_BATCH + 100)
    for step in ("batch", "merge"):
        run_mortal(step, bootstrap, topic, str(tmp_path))
        (home,) = [path for path in (tmp_path / "_barnabas").iterdir() if path.name != "checkpoint"]
        if step == "batch":
            assert list((home / "staging").rglob("*.parquet")), "some files of the batch are not in their places"
        else:
            assert list((home / "merges").glob("*.json")), "a merge is not at its end"
        seen = parquet(tmp_path).sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()
        assert len({(row["partition"], row["offset"]) for row in seen}) == len(seen), "a reader finds records twice"
    run_job(export_options(bootstrap, topic, str(tmp_path)), spark=spark, once=True)
    assert rows(parquet(tmp_path), topic, PARTITIONS) == filled.by_partition
    assert not list((tmp_path / "_barnabas").rglob("*.part"))
    assert (
        Export(export_options(bootstrap, topic, str(tmp_path))).checkpoint_beside()
        == f"{tmp_path}/_barnabas/checkpoint"
    )


def test_row_groups_are_copied_where_they_are_large_enough(
    spark: SparkSession, bootstrap: str, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(to_files, "ROW_GROUP_BYTES", 1)
    options = ExportOptions(
        topics=(filled.name,), to=str(tmp_path), partition_by="none", bootstrap_servers=bootstrap,
        max_offsets_per_batch=800,
    )  # fmt: skip
    outcome = run_job(options, spark=spark, once=True)
    assert outcome.batches > 1
    (file,) = visible(tmp_path)
    assert pyarrow.parquet.read_metadata(file).num_row_groups == PARTITIONS * outcome.batches
    table = parquet(tmp_path)
    assert rows(table, filled.name, PARTITIONS) == filled.by_partition
    for partition in range(PARTITIONS):
        offsets = table.filter(pc.field("partition") == partition).column("offset").to_pylist()
        assert offsets == sorted(offsets)


def test_files_of_two_schemas_are_merged_by_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Files have two schemas if the release of Spark changes between runs and writes the same columns differently."""
    files, format = LocalFiles(tmp_path), to_files.Format("parquet", "zstd")
    for name, nullable in (("a", True), ("b", False)):
        table = pa.table({"value": [name]}, schema=pa.schema([pa.field("value", pa.string(), nullable)]))
        pyarrow.parquet.write_table(table, tmp_path / name)
    shape = ExportOptions(topics=("orders",), to=str(tmp_path), with_metadata=False).shape()
    merger = to_files.Merger(spark, files, format, shape)
    assert not merger._copied(["a", "b"], "copied.parquet")
    assert not (tmp_path / "copied.parquet").exists()
    merged = merger._rewritten(["a", "b"], "rewritten")
    assert pyarrow.parquet.read_table(tmp_path / merged).column("value").to_pylist() == ["a", "b"]


def test_days_are_those_of_utc(
    spark: SparkSession, bootstrap: str, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time zone of the session has no effect; nor has a merge of large files by Spark."""
    monkeypatch.setattr(to_files, "SMALL_BYTES", 0)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        run_job(
            ExportOptions(topics=(filled.name,), to=str(tmp_path), bootstrap_servers=bootstrap), spark=spark, once=True
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    table = parquet(tmp_path)
    assert rows(table, filled.name, PARTITIONS) == filled.by_partition
    for row in table.select(["timestamp", "date"]).to_pylist():
        day = datetime.datetime.fromtimestamp(milliseconds(row["timestamp"]) / 1000, datetime.UTC).date()
        assert row["date"] == day.isoformat()
