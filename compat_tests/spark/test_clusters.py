"""Separate executors, Spark Connect, and a declarative pipeline: each in its own process, checked row by row.

Knows nothing of how they are used; that is `elsewhere`, and the example of the docs.
"""

import itertools
import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compat_tests.running import Running
from compat_tests.spark.generated import Made, by_partition, made, renamed, send
from compat_tests.spark.processes import ROOT, environment
from compat_tests.spark.topics import committed, create, messages

pytestmark = [pytest.mark.xdist_group("spark apart"), pytest.mark.long]

EXAMPLES = ROOT / "docs" / "examples"
PARTITIONS = 4


@pytest.mark.parametrize(("kind", "executors"), [("local-cluster[2,1,1024]", 2), ("connect", 0)])
def test_what_is_read_written_and_mirrored_is_what_was_sent(
    bootstrap: str, own_broker: Callable[..., Running], topic: str, tmp_path: Path, kind: str, executors: int
) -> None:
    target = own_broker().bootstrap
    create(bootstrap, topic, f"{topic}-batch", f"{topic}-stream", partitions=PARTITIONS)
    records = made(topic, 1500, partitions=PARTITIONS)
    send(bootstrap, records)
    done = run("-m", "compat_tests.spark.elsewhere", kind, bootstrap, target, topic, str(tmp_path))
    assert done == {"rows": 1500, "streamed": 1500, "mirrored": 1500, "where": executors}
    for where, name in ((bootstrap, f"{topic}-batch"), (bootstrap, f"{topic}-stream"), (target, f"source.{topic}")):
        assert committed(where, name) == by_partition(renamed(records, name), PARTITIONS)


def test_a_declarative_pipeline_reads_and_writes(
    own_broker: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example of the docs, unchanged except for its directories."""
    bootstrap = own_broker({"num.partitions": str(PARTITIONS)}).bootstrap
    home = tmp_path / "pipeline"
    shutil.copytree(EXAMPLES / "declarative", home)
    spec = home / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/takings-pipeline", (tmp_path / "storage").as_uri()))
    orders = runpy.run_path(str(EXAMPLES / "orders.py"))["orders"]()
    send(
        bootstrap,
        [Made("orders", n % PARTITIONS, None, json.dumps(one).encode(), (), 0) for n, one in enumerate(orders)],
    )
    monkeypatch.setenv("BOOTSTRAP_SERVERS", bootstrap)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "768m")
    monkeypatch.setenv("SPARK_TESTING", "0")  # this config, even empty, lets the server choose its port
    command(str(Path(sys.executable).with_name("spark-pipelines")), "run", cwd=home)
    held = pq.read_table(home / "spark-warehouse" / "orders").select(["id", "partition", "offset"]).to_pylist()
    assert sorted(each["id"] for each in held) == [order["id"] for order in orders]
    assert len({(each["partition"], each["offset"]) for each in held}) == len(orders)
    assert taken_in(bootstrap, "takings") == takings(orders)


def takings(orders: list[dict[str, Any]]) -> dict[tuple[datetime, str], float]:
    """Returns the orders of each closed quarter of an hour, by its start and by product."""
    at = [datetime.fromisoformat(order["at"]) for order in orders]
    over = max(at) - timedelta(minutes=1)
    taken: dict[tuple[datetime, str], float] = {}
    for when, order in zip(at, orders, strict=True):
        begin = when - timedelta(minutes=when.minute % 15, seconds=when.second, microseconds=when.microsecond)
        if begin + timedelta(minutes=15) <= over:
            place = (begin, order["product"])
            taken[place] = taken.get(place, 0) + order["count"] * order["price"]
    return {place: pytest.approx(amount, abs=0.006) for place, amount in taken.items()}


def taken_in(bootstrap: str, topic: str) -> dict[tuple[datetime, str], float]:
    """Returns the pipeline's output; each window once, keyed by product."""
    found: dict[tuple[datetime, str], float] = {}
    for message in itertools.chain(*messages(bootstrap, topic)):
        one = json.loads(message.value())
        place = (datetime.fromisoformat(one["from"]), one["product"])
        assert place not in found and message.key() == one["product"].encode()
        found[place] = one["taken"]
    return found


def run(*arguments: str) -> dict[str, int]:
    """Returns the program's last line, as JSON."""
    found: dict[str, int] = json.loads(command(sys.executable, *arguments, cwd=ROOT).splitlines()[-1])
    return found


def command(*words: str, cwd: Path) -> str:
    """Returns the output of a command, which must succeed."""
    done = subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout
