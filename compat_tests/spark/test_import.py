"""The import job: new files and new rows of a database, each row once, over stops and crashes."""

import json
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barnabas.pipelines.jobs import run_job
from barnabas.pipelines.jobs.import_ import ImportOptions
from barnabas.pipelines.jobs.importing import tables
from barnabas.pipelines.jobs.progress import Progress
from barnabas.pipelines.jobs.running import JobFailed
from compat_tests.spark.generated import WORDS
from compat_tests.spark.topics import create, messages

PARTITIONS = 3


@pytest.fixture
def target(bootstrap: str, topic: str) -> str:
    create(bootstrap, topic, partitions=PARTITIONS)
    return topic


def orders(count: int, first: int, seed: int = 3) -> list[dict[str, Any]]:
    """Returns rows with nulls, quotes, line breaks and all kinds of letters."""
    chance = random.Random(f"{first} {seed}")
    start = datetime(2026, 3, 29, tzinfo=UTC)
    return [
        {
            "id": number,
            "customer": chance.choice([*WORDS, 'a "quoted" one', "two\nlines", "", None]),
            "amount": chance.randrange(1, 100_000) / 100,
            "at": (start + timedelta(seconds=number, microseconds=number * 1001)).isoformat(),
            "items": chance.choice([None, [], ["a"], ["b", "c"]]),
        }
        for number in range(first, first + count)
    ]


def put(folder: Path, name: str, lines: list[str], *, at: int = 1_700_000_000) -> None:
    """Writes a file with this time (seconds since 1970) atomically."""
    aside = folder.parent / f".{name}"
    aside.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    os.utime(aside, (at, at))
    aside.rename(folder / name)


def test_files_as_they_appear(spark: SparkSession, bootstrap: str, target: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    options = ImportOptions(
        bootstrap_servers=bootstrap,
        topic=target,
        files=str(folder),
        format="json",
        max_files_per_batch=2,
        key=("customer",),
        partition=f"id % {PARTITIONS}",
        timestamp="at",
        columns=("id", "customer", "amount", "items"),
        headers={"file": "_metadata.file_name", "id": "id"},
        where="id % 10 != 9",
    )
    checkpoint = str(tmp_path / "checkpoint")
    rows = orders(400, 0)
    for number in range(4):
        put(folder, f"{number}.json", [json.dumps(row) for row in rows[number * 100 : number * 100 + 100]])

    results: list[Progress] = []
    outcome = run_job(options, spark=spark, once=True, checkpoint=checkpoint, report=results.append)
    assert (outcome.batches, outcome.stopped) == (2, False)
    assert outcome.rows == 400  # Spark counts rows when they are read
    assert [each.batch for each in results] == [0, 1]

    later = [{**row, "new": True} for row in orders(50, 400)]  # a column that the kept schema does not have
    put(folder, "4.json", [json.dumps(row) for row in later])
    assert run_job(options, spark=spark, once=True, checkpoint=checkpoint).batches == 1
    assert run_job(options, spark=spark, once=True, checkpoint=checkpoint).batches == 0

    wanted = {row["id"]: row for row in [*rows, *later] if row["id"] % 10 != 9}
    found: dict[int, int] = {}
    for partition, its in enumerate(messages(bootstrap, target)):
        for message in its:
            value = json.loads(message.value())
            row = wanted[value["id"]]
            found[value["id"]] = found.get(value["id"], 0) + 1
            assert value == {name: row[name] for name in ("id", "customer", "amount", "items")}
            assert partition == row["id"] % PARTITIONS
            assert message.key() == (None if row["customer"] is None else row["customer"].encode())
            assert message.timestamp()[1] == int(datetime.fromisoformat(row["at"]).timestamp() * 1000)
            assert dict(message.headers()) == {
                "file": f"{row['id'] // 100}.json".encode(),
                "id": str(row["id"]).encode(),
            }
    assert found == dict.fromkeys(wanted, 1)


def test_lines_stay_in_their_order(spark: SparkSession, bootstrap: str, target: str, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    lines = [f"{number} {WORDS[number % len(WORDS)]}" for number in range(3_000)]
    put(folder, "b.log", lines[:2_000])
    put(folder, "a.log", lines[2_000:], at=1_700_000_001)
    options = ImportOptions(
        bootstrap_servers=bootstrap, topic=target, files=f"{folder}/*.log", format="text", value_format="raw",
        in_order=True, partition="1",
    )  # fmt: skip
    assert run_job(options, spark=spark, once=True, checkpoint=str(tmp_path / "checkpoint")).batches == 2
    found = messages(bootstrap, target)
    assert [message.value().decode() for message in found[1]] == lines
    assert found[0] == found[2] == []


def test_a_row_that_cannot_be_read(spark: SparkSession, bootstrap: str, target: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, "1.csv", ["id,name", "1,ann", "two,bob"])
    options = ImportOptions(
        bootstrap_servers=bootstrap, topic=target, files=str(folder), format="csv", schema="id INT, name STRING",
        reader_options={"header": "true"},
    )  # fmt: skip
    with pytest.raises(JobFailed, match=r"1\.csv|MALFORMED") as failure:
        run_job(options, spark=spark, once=True, checkpoint=str(tmp_path / "checkpoint"))
    assert "\tat " not in str(failure.value)
    assert messages(bootstrap, target) == [[], [], []]


class Table:
    """A table in a database that is part of Spark."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.url = f"jdbc:derby:{home}/shop;create=true"
        jvm = spark._jvm
        assert jvm is not None
        jvm.java.lang.Class.forName("org.apache.derby.iapi.jdbc.AutoloadedDriver")
        self._connection = jvm.java.sql.DriverManager.getConnection(self.url)
        self("create table orders (id bigint primary key, changed timestamp, customer varchar(40), price decimal(8,2))")

    def __call__(self, statement: str) -> None:
        self._connection.createStatement().execute(statement)

    def add(self, first: int, count: int) -> None:
        """Adds rows, three of which have the same time."""
        rows = ", ".join(
            f"({number}, timestamp('2026-03-29 {number // 3 // 60 % 24:02}:{number // 3 % 60:02}:07.123456'), "
            f"nullif('customer {number % 7 * (number % 5)}', 'customer 0'), {number / 4:.2f})"
            for number in range(first, first + count)
        )
        self(f"insert into orders values {rows}")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Table]:
    table = Table(spark, tmp_path)
    yield table
    table.close()


def test_rows_of_a_table_as_they_come(
    spark: SparkSession, bootstrap: str, target: str, tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ImportOptions(
        bootstrap_servers=bootstrap, topic=target, jdbc_url=table.url, table="orders", increasing=("changed", "id"),
        batch_rows=40, key=("customer", "id"), timestamp="changed", partition="2",
    )  # fmt: skip
    checkpoint = str(tmp_path / "checkpoint")

    def import_() -> tuple[int, int]:
        outcome = run_job(options, spark=spark, once=True, checkpoint=checkpoint)
        return outcome.rows, outcome.batches

    def ids() -> list[int]:
        return [json.loads(message.value())["ID"] for message in messages(bootstrap, target)[2]]

    table.add(0, 100)
    assert import_() == (100, 3)
    assert import_() == (0, 0)
    table.add(100, 10)

    # Ended between the batch's commit and the job's note of it: no row is written twice.
    end = tables.Batches.end
    with monkeypatch.context() as crash:
        crash.setattr(tables.Batches, "end", lambda self: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(JobFailed, match="killed"):
            import_()
    assert ids() == list(range(110))
    assert tables.Batches.end is end
    assert import_() == (0, 0)

    # Ended after the batch was decided, and before it was written.
    table.add(110, 10)
    with monkeypatch.context() as crash:
        crash.setattr(tables.TableImport, "_copy", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(JobFailed, match="killed"):
            import_()
    assert import_() == (10, 1)
    assert ids() == list(range(120))

    first, last = (messages(bootstrap, target)[2][index] for index in (0, 119))
    assert json.loads(first.key()) == {"customer": None, "id": 0}
    assert json.loads(last.value()) == {
        "ID": 119, "CHANGED": "2026-03-29T00:39:07.123456Z", "CUSTOMER": None, "PRICE": 29.75,
    }  # fmt: skip
    assert last.timestamp()[1] == int(datetime(2026, 3, 29, 0, 39, 7, 123_000, UTC).timestamp() * 1000)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"increasing": ("nothing",)}, "increasing names 'nothing', but the columns are ID, CHANGED, CUSTOMER, PRICE"),
    ({"increasing": ("customer",)}, "increasing names 'CUSTOMER', which is (varchar|string)"),
    ({"increasing": ("id",), "delay_seconds": 5}, "delay_seconds needs a time in increasing"),
    ({"increasing": ("id",), "key": ("nothing",)}, "key 'nothing' is neither a column"),
    ({"increasing": ("id",), "timestamp": "price"}, "timestamp 'price' is decimal"),
]


def test_errors_of_an_import(spark: SparkSession, bootstrap: str, target: str, tmp_path: Path, table: Table) -> None:
    table.add(0, 1)
    for changes, said in MISTAKES:
        options = ImportOptions(
            bootstrap_servers=bootstrap, topic=target, jdbc_url=table.url, query="select * from orders", **changes
        )
        with pytest.raises(ValueError, match=said):
            run_job(options, spark=spark, once=True, checkpoint=str(tmp_path / "checkpoint"))
    assert messages(bootstrap, target) == [[], [], []]
