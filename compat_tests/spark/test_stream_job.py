"""The stream job: the operations of Kafka Streams, row by row, and the treatment of bad records."""

import json
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from confluent_kafka import Message
from pyspark.sql import SparkSession

from barnabas.cli import pipeline
from barnabas.pipelines.jobs import JOBS, Entry, run_job
from barnabas.pipelines.jobs.running import JobFailed
from barnabas.pipelines.jobs.stream import Stream, StreamOptions
from compat_tests.running import Running
from compat_tests.spark.generated import Made, send
from compat_tests.spark.processes import started
from compat_tests.spark.topics import create, messages
from compat_tests.test_documents import ROOT

PARTITIONS = 2
START = 1_700_000_000_000
MINUTE = 60_000


def received(bootstrap: str, topic: str) -> list[Message]:
    """Returns the committed records of a topic, partition by partition."""
    return [message for its in messages(bootstrap, topic) for message in its]


def values(found: Iterable[Message]) -> list[Any]:
    return [json.loads(message.value()) for message in found]


def records(topic: str, rows: Iterable[tuple[str | None, Any, int]]) -> list[Made]:
    """Returns (key, value, time) as records, in partitions by key."""
    made = []
    for key, value, timestamp in rows:
        body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        partition = 0 if key is None else sum(key.encode()) % PARTITIONS
        made.append(Made(topic, partition, None if key is None else key.encode(), body, (("h", b"1"),), timestamp))
    return made


@pytest.fixture
def once(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Callable[..., int]:
    """Runs the job until the end of the topic, and returns the number of rows; the checkpoint is the same each time."""

    def run(**options: Any) -> int:
        described = StreamOptions(bootstrap_servers=bootstrap, **options)
        return run_job(described, checkpoint=str(tmp_path / "checkpoint"), once=True, spark=spark).rows

    return run


def code(tmp_path: Path, text: str) -> str:
    path = tmp_path / "transforms.py"
    path.write_text(text)
    return str(path)


def test_sql_joins_a_stream_with_a_table_and_bad_records_are_dead_letters(
    once: Callable[..., int], spark: SparkSession, bootstrap: str, name: str, tmp_path: Path
) -> None:
    """The job then continues as a stream; it joins with the newest values as of its start."""
    orders, customers, out, dead = (f"{name}-{each}" for each in ("orders", "customers", "out", "dead"))
    create(bootstrap, orders, customers, out, dead, partitions=PARTITIONS)
    send(
        bootstrap,
        records(
            customers,
            [
                ("a", {"name": "old"}, START),
                ("a", {"name": "Ada"}, START),
                ("b", {"name": "Bob"}, START),
                ("c", {"name": "gone"}, START),
                ("c", None, START),
            ],
        ),
    )
    first = [(who, {"id": n, "who": who, "amount": n / 2}, START + n) for n, who in enumerate("abcabc")]
    bad = [("a", b"no json", START + 50), (None, b'{"id": "x"}', START + 51)]
    send(bootstrap, records(orders, first[:3] + bad + first[3:]))
    options = {
        "tables": (
            f"o=topic:{orders},format=json,schema=id BIGINT, who STRING, amount DOUBLE,key.format=utf8",
            f"c=topic:{customers},read=latest,format=json,schema=name STRING,key.format=utf8",
        ),
        "sql": "SELECT o._key, o._timestamp, id, name FROM o JOIN c ON o.who = c._key WHERE amount > 0",
        "to": out,
        "dead_letters": dead,
    }
    assert once(**options) > 0
    expected = [(1, b"b", {"id": 1, "name": "Bob"}), (3, b"a", {"id": 3, "name": "Ada"})]
    expected += [(4, b"b", {"id": 4, "name": "Bob"})]
    got = received(bootstrap, out)
    assert sorted((m.timestamp()[1] - START, m.key(), json.loads(m.value())) for m in got) == expected

    letters = sorted(received(bootstrap, dead), key=lambda m: m.timestamp()[1])
    assert [(m.key(), m.value(), m.timestamp()[1]) for m in letters] == [
        (b"a", b"no json", START + 50),
        (None, b'{"id": "x"}', START + 51),
    ]
    headers = [dict(m.headers()) for m in letters]
    assert [each.pop("__connect.errors.exception.message").decode() for each in headers] == [
        f"value: it is not JSON of the schema id BIGINT, who STRING, amount DOUBLE: {text}"
        for text in ("no json", '{"id": "x"}')
    ]
    assert headers[0] == {
        "h": b"1",
        "__connect.errors.topic": orders.encode(),
        "__connect.errors.partition": b"1",
        "__connect.errors.offset": b"2",
        "__connect.errors.timestamp": str(START + 50).encode(),
        "__connect.errors.connector.name": f"stream to {out}".encode(),
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.exception.class.name": b"barnabas.pipelines.values.framing.Undecodable",
    }

    send(bootstrap, records(customers, [("c", {"name": "Cy"}, START)]))
    job = Stream(StreamOptions(bootstrap_servers=bootstrap, **options))
    queries = job.start(spark, once=False, checkpoint=str(tmp_path / "checkpoint"))
    for at in (90, 91):
        send(bootstrap, records(orders, [("c", {"id": at, "who": "c", "amount": 1}, START + at)]))
        queries[0].processAllAvailable()
        expected.append((at, b"c", {"id": at, "name": "Cy"}))
        send(bootstrap, records(customers, [("c", {"name": "too late"}, START)]))
    for query in queries:
        query.stop()
    job.close()
    got = received(bootstrap, out)
    assert sorted((m.timestamp()[1] - START, m.key(), json.loads(m.value())) for m in got) == expected
    assert len(received(bootstrap, dead)) == 2


WINDOWS = """
from pyspark.sql import functions as f

def row(kind, key, start, end, value):
    return f.struct(f.lit(kind).alias("kind"), f.col(key).cast("string").alias("key"),
                    start.cast("timestamp").alias("start"), end.cast("timestamp").alias("end"),
                    value.cast("double").alias("value")).alias("row")

def transform(clicks):
    tumbling = clicks.groupBy(f.window("at", "5 minutes"), "user").agg(f.sum("n").alias("n"))
    sessions = clicks.groupBy(f.session_window("at", "2 minutes"), "user").agg(f.count("*").alias("n"))
    distinct = clicks.dropDuplicatesWithinWatermark(["id"])
    window, session = f.col("window"), f.col("session_window")
    return (
        tumbling.select(row("tumbling", "user", window.start, window.end, f.col("n")))
        .unionByName(sessions.select(row("session", "user", session.start, session.end, f.col("n"))))
        .unionByName(distinct.select(row("distinct", "id", f.col("at"), f.col("at"), f.col("n"))))
        .select("row.*")
    )
"""


def clicks(count: int) -> list[dict[str, Any]]:
    """Returns clicks in the order of their times; one in seven occurs twice."""
    chance = random.Random(11)
    now, made = START // MINUTE * MINUTE, []
    for number in range(count):
        now += chance.choice((0, 1_000, 30_000, 200_000))
        again = number % 7 == 3
        made.append(made[-1] if again else {"id": number, "user": chance.choice("xyz"), "n": number, "at": now})
    return made


@pytest.mark.long
def test_windows_sessions_and_duplicates(once: Callable[..., int], bootstrap: str, name: str, tmp_path: Path) -> None:
    topic, out = f"{name}-clicks", f"{name}-out"
    create(bootstrap, topic, out, partitions=PARTITIONS)
    made = clicks(120)
    last = {"id": -1, "user": "end", "n": 0, "at": made[-1]["at"] + 60 * MINUTE}
    shown = [{**each, "at": each["at"] // 1000} for each in [*made, last]]
    options = {
        "tables": (
            f"clicks=topic:{topic},format=json,schema=id BIGINT, user STRING, n BIGINT, at TIMESTAMP,"
            "watermark=at 3 minutes",
        ),
        "transform": code(tmp_path, WINDOWS),
        "to": out,
        "state_partitions": 2,
    }
    half = [(each["user"], each, 0) for each in shown[:60]]
    send(bootstrap, records(topic, half))
    once(**options)
    send(bootstrap, records(topic, [(each["user"], each, 0) for each in shown[60:]]))
    once(**options)
    rows = values(received(bootstrap, out))
    by_kind: dict[str, list[Any]] = {kind: [] for kind in ("tumbling", "session", "distinct")}
    for row in rows:
        found = (row["key"], _ms(row["start"]), _ms(row["end"]), row["value"])
        if row["key"] not in ("end", "-1"):
            by_kind[row["kind"]].append(found)
    assert sorted(by_kind["tumbling"]) == sorted(_tumbling(made))
    assert sorted(by_kind["session"]) == sorted(_sessions(made))
    firsts = {each["id"]: each for each in reversed(made)}
    assert sorted(by_kind["distinct"]) == sorted(
        (str(each["id"]), each["at"], each["at"], float(each["n"])) for each in firsts.values()
    )


def _ms(text: str) -> int:
    from datetime import datetime

    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _tumbling(made: list[dict[str, Any]]) -> list[tuple[str, int, int, float]]:
    sums: dict[tuple[str, int], float] = {}
    for each in made:
        start = each["at"] // (5 * MINUTE) * 5 * MINUTE
        sums[each["user"], start] = sums.get((each["user"], start), 0.0) + each["n"]
    return [(user, start, start + 5 * MINUTE, total) for (user, start), total in sums.items()]


def _sessions(made: list[dict[str, Any]]) -> list[tuple[str, int, int, float]]:
    found = []
    for user in "xyz":
        times = sorted(each["at"] for each in made if each["user"] == user)
        start, count, end = times[0], 0.0, times[0]
        for at in times:
            if at > end + 2 * MINUTE:
                found.append((user, start, end + 2 * MINUTE, count))
                start, count = at, 0.0
            count, end = count + 1, at
        found.append((user, start, end + 2 * MINUTE, count))
    return found


STATEFUL = """
import pandas as pd
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StructField, StructType

class Running(StatefulProcessor):
    def init(self, handle):
        self._total = handle.getValueState("total", StructType([StructField("total", LongType())]))

    def handleInputRows(self, key, rows, timerValues):
        total = self._total.get()[0] if self._total.exists() else 0
        for frame in rows:
            total += int(frame["amount"].sum())
        self._total.update((total,))
        yield pd.DataFrame({"kind": ["total"], "key": [str(key[0])], "number": [total]})

    def close(self):
        pass

def transform(orders, payments):
    joined = orders.join(
        payments,
        f.expr("order_id = id AND paid_at BETWEEN at AND at + INTERVAL 5 minutes"),
    ).select(f.lit("paid").alias("kind"), f.col("id").cast("string").alias("key"), f.col("amount").alias("number"))
    totals = orders.groupBy("who").transformWithStateInPandas(
        statefulProcessor=Running(), outputStructType="kind STRING, key STRING, number LONG",
        outputMode="Append", timeMode="None")
    return joined.unionByName(totals).withColumn("_key", f.col("key"))
"""


@pytest.mark.long
def test_streams_joined_with_streams_and_state_of_ones_own(
    once: Callable[..., int], bootstrap: str, name: str, tmp_path: Path
) -> None:
    orders, payments, out = (f"{name}-{each}" for each in ("orders", "payments", "out"))
    create(bootstrap, orders, payments, out, partitions=PARTITIONS)
    seconds = START // 1000
    made = [{"id": n, "who": "xyz"[n % 3], "amount": n, "at": seconds + 10 * n} for n in range(30)]
    paid = [{"order_id": n, "paid_at": seconds + 10 * n + (20 if n % 2 else 900)} for n in range(30)]
    options = {
        "tables": (
            f"orders=topic:{orders},format=json,schema=id BIGINT, who STRING, amount BIGINT, at TIMESTAMP,"
            "watermark=at 1 hour",
            f"payments=topic:{payments},format=json,schema=order_id BIGINT, paid_at TIMESTAMP,watermark=paid_at 1 hour",
        ),
        "transform": code(tmp_path, STATEFUL),
        "to": out,
        "state_partitions": 2,
    }
    send(bootstrap, records(orders, [(each["who"], each, 0) for each in made[:15]]))
    send(bootstrap, records(payments, [(str(each["order_id"]), each, 0) for each in paid[10:]]))
    once(**options)
    send(bootstrap, records(orders, [(each["who"], each, 0) for each in made[15:]]))
    send(bootstrap, records(payments, [(str(each["order_id"]), each, 0) for each in paid[:10]]))
    once(**options)
    got = received(bootstrap, out)
    rows = values(got)
    assert all(m.key() == row["key"].encode() for m, row in zip(got, rows, strict=True))
    joined = sorted(int(row["key"]) for row in rows if row["kind"] == "paid")
    assert joined == [n for n in range(30) if n % 2]
    totals = {row["key"]: row["number"] for row in rows if row["kind"] == "total"}
    assert totals == {who: sum(each["amount"] for each in made if each["who"] == who) for who in "xyz"}
    assert sum(row["kind"] == "total" for row in rows) == 6, "one a user and batch"


@pytest.mark.xdist_group("spark apart")
@pytest.mark.long
def test_a_kill_loses_and_doubles_nothing(once: Callable[..., int], bootstrap: str, name: str, tmp_path: Path) -> None:
    topic, out = f"{name}-in", f"{name}-out"
    create(bootstrap, topic, out, partitions=PARTITIONS)
    send(bootstrap, records(topic, [(str(n % 10), {"n": n}, START + n) for n in range(1_000)]))
    sql = "SELECT n, _key, _timestamp FROM numbers WHERE n % 2 = 0"
    table = f"numbers=topic:{topic},format=json,schema=n BIGINT"
    command = [
        *[sys.executable, "-m", "barnabas", "pipeline", "stream", "--bootstrap-server", bootstrap, "--table", table],
        *["--sql", sql, "--to", out, "--max-offsets-per-batch", "50", "--checkpoint", str(tmp_path / "checkpoint")],
        *["--master", "local[2]", "--conf", "spark.driver.memory=768m"],
    ]
    log = tmp_path / "log"
    with log.open("w") as said, started(*command, seconds=200, stdout=subprocess.PIPE, stderr=said) as job:
        assert job.stdout is not None
        assert any("batch 2:" in line for line in job.stdout), log.read_text()
    before = len(received(bootstrap, out))
    assert 0 < before < 500, "it was killed on the way"
    once(tables=(table,), sql=sql, to=out)
    got: dict[int, list[int]] = {}
    for message in received(bootstrap, out):
        got.setdefault(int(message.key()), []).append(json.loads(message.value())["n"])
    assert got == {key: list(range(key, 1_000, 10)) for key in range(0, 10, 2)}


def test_a_bad_record_ends_the_job_where_nobody_says_otherwise(
    once: Callable[..., int], bootstrap: str, name: str
) -> None:
    topic, out = f"{name}-in", f"{name}-out"
    create(bootstrap, topic, out, partitions=PARTITIONS)
    send(bootstrap, records(topic, [("a", {"n": 1}, START), ("a", b"{", START)]))
    found: Mapping[str, Any] = {
        "tables": (f"t=topic:{topic},format=json,schema=n INT",),
        "sql": "SELECT n FROM t",
        "to": out,
    }
    with pytest.raises(JobFailed, match=rf"value of {topic}-1 at offset 1: it is not JSON of the schema n INT: \{{"):
        once(**found)
    assert not received(bootstrap, out), "nothing of a batch that failed is committed"
    once(**found, undecodable="null")
    assert sorted(map(str, values(received(bootstrap, out)))) == ["{'n': 1}", "{}"]


def test_what_the_how_to_says(
    spark: SparkSession, own_broker: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs the commands of the how-to on existing records, with the function that one of them needs."""
    bootstrap = own_broker().bootstrap
    monkeypatch.chdir(tmp_path)
    parsed_options: list[StreamOptions] = []

    def run(name: str, entry: Entry, given: Mapping[str, Any], checkpoint: str, **others: Any) -> int:
        described = StreamOptions(**{**given, "bootstrap_servers": bootstrap})
        run_job(described, checkpoint=str(tmp_path / checkpoint), once=True, spark=spark)
        parsed_options.append(described)
        return 0

    monkeypatch.setattr(pipeline, "run", run)
    topics = ("orders", "payments", "clicks", "large-orders", "clicks-by-minute", "paid-orders")
    create(bootstrap, *topics, partitions=PARTITIONS)
    order = {"id": 1, "who": "Ada", "amount": 101.5, "at": START // 1000}
    send(bootstrap, records("orders", [("a", order, START), ("b", {**order, "id": 2, "amount": 3}, START)]))
    send(bootstrap, records("payments", [("1", {"order_id": 1, "paid_at": START // 1000 + 60}, START)]))
    seen = [("x", {"user": "x", "page": "home"}, START + 1_000 * n) for n in range(5)]
    send(bootstrap, records("clicks", [*seen, ("y", {"user": "y", "page": "other"}, START + 60 * MINUTE)]))
    page = (ROOT / "docs/how-to/transform-with-spark.md").read_text("utf-8")
    found = re.findall(r"^```(python|sh)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for kind, body in sorted(found, key=lambda block: block[0] != "python"):  # files before the commands that read them
        if kind == "python":
            if body.startswith("# clicks.py"):
                (tmp_path / "clicks.py").write_text(body)
            elif "run_job(" not in body:
                compile(body, "page", "exec")
        elif "barnabas pipeline stream" in body:
            words = shlex.split(body.replace("\\\n", " "))
            command = pipeline.command_of("stream", JOBS["stream"])
            assert isinstance(command, click.Command)
            command.main(words[3:], standalone_mode=False)
    assert [options.to for options in parsed_options] == ["large-orders", "clicks-by-minute", "paid-orders"]
    assert values(received(bootstrap, "large-orders")) == [{"who": "Ada", "amount": 101.5}]
    minutes = received(bootstrap, "clicks-by-minute")
    assert [(m.key(), json.loads(m.value())["clicks"]) for m in minutes] == [(b"home", 5)]
    assert [row["id"] for row in values(received(bootstrap, "paid-orders"))] == [1]
