"""Shared by the tests of export and backfill: files as other readers see them, and jobs that are killed.

Knows nothing of Spark.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from compat_tests.spark.generated import Made
from compat_tests.spark.processes import environment


def parquet(directory: Path) -> pa.Table:
    """Returns the rows of a data set."""
    return pyarrow.dataset.dataset(directory, partitioning="hive").to_table()


def rows(table: pa.Table, topic: str, partitions: int) -> list[list[Made]]:
    """Returns the rows of a topic from a table with metadata, by partition, by offset; each offset once."""
    found: list[list[Made]] = [[] for _ in range(partitions)]
    ordered = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()
    for row in ordered:
        if str(row["topic"]) != topic:
            continue
        its = found[row["partition"]]
        assert row["offset"] == len(its)
        assert row["timestampType"] == 0
        its.append(
            Made(
                topic,
                row["partition"],
                row["key"],
                row["value"],
                headers(row["headers"]),
                milliseconds(row["timestamp"]),
            )
        )
    return found


def headers(outcomes: Iterable[Mapping[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header["key"], header["value"]) for header in outcomes or ())


def milliseconds(timestamp: Any) -> int:
    return round(timestamp.timestamp() * 1000)


def visible(directory: Path) -> list[Path]:
    """Returns the files that are visible to readers."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file() and not any(part.startswith(("_", ".")) for part in path.relative_to(directory).parts)
    )


def run_mortal(step: str, bootstrap: str, source: str, target: str) -> None:
    """Runs `mortal_jobs` until it is killed."""
    done = subprocess.run(
        [sys.executable, "-m", "compat_tests.spark.mortal_jobs", step, bootstrap, source, target],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode != 0, f"it came to its end, and was not killed\n{done.stdout}\n{done.stderr}"
    expected = -9 if step != "transaction" else 1
    assert done.returncode == expected, done.stderr[-4000:]
