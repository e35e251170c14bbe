"""``python -m benchmarks [NAME …] [--rounds N]``: measures, prints the table, and keeps it in benchmarks/results.md.

Knows nothing of what is measured.
"""

import argparse
import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    acls,
    cleaning,
    cleaning_latency,
    cluster,
    failover,
    groups,
    measure,
    metadata,
    metrics,
    proxy,
    quorum,
    recovery,
    replicas,
    shares,
    tls,
    transactions,
)
from benchmarks.measure import Row

SPARK = ("spark-read", "spark-write", "spark-files", "spark-latency")


def with_spark(name: str, folder: Path, rounds: int) -> Iterator[Row]:
    """Imports on first use: the other measurements run without Spark."""
    from benchmarks import spark

    yield from spark.MEASUREMENTS[name](folder, rounds)


MEASUREMENTS = {
    **measure.MEASUREMENTS,
    "acls": acls.checks,
    "cleaning": cleaning.throughput,
    "cleaning-latency": cleaning_latency.latency,
    "cluster": cluster.beside_apache,
    "failover": failover.after_kills,
    "many-topics": metadata.many_topics,
    "metrics": metrics.cost,
    "proxy": proxy.in_between,
    "quorum": quorum.beside_apache,
    "recovery": recovery.after_a_kill,
    "idle-replicas": replicas.idle,
    "moved-replicas": replicas.moved,
    "shut-down": replicas.shut_down,
    "large-groups": groups.large,
    "many-groups": groups.replay,
    "share": shares.throughput,
    "tls": tls.beside_apache,
    "tls-handshakes": tls.crowd,
    "transactions": transactions.small,
    "large-transactions": transactions.large,
    "transactional-ids": transactions.start_with_ids,
    **{name: functools.partial(with_spark, name) for name in SPARK},
}
RESULTS = Path(__file__).parent / "results.md"
HEADINGS = ("what", "measured", "baseline", "ratio", "budget", "holds")
RULE = "| --- " * (len(HEADINGS) + 1) + "|\n"


def cells(row: Row) -> list[str]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    return [row.what, row.measured, row.baseline, ratio, row.budget, {True: "yes", False: "NO", None: ""}[row.holds]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASUREMENTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each; medians are printed (default 3)")
    parser.add_argument(
        "--gigabytes", type=float, help="of data that recovery reads (default 2), or moved-replicas moves (default 4.3)"
    )
    parser.add_argument("--keep", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    sized = {} if arguments.gigabytes is None else {"gigabytes": arguments.gigabytes}
    measurements = MEASUREMENTS | {
        "recovery": functools.partial(recovery.after_a_kill, **sized),
        "moved-replicas": functools.partial(replicas.moved, **sized),
    }
    names = arguments.names or list(measurements)
    for name in ("apache", "cluster", "many-topics", "quorum", "shut-down", "tls", *SPARK):
        if name in names and shutil.which("java") is None:
            print(f"{name} is left out: java is not here", file=sys.stderr)
            names.remove(name)
    rows: list[Row] = []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()) as folder:
        for name in names:
            print(f"{name} …", file=sys.stderr)
            for row in measurements[name](Path(folder), arguments.rounds):
                rows.append(row)
                print("   ", " | ".join(cells(row)), file=sys.stderr)
    table = Table(*HEADINGS)
    for row in rows:
        table.add_row(*cells(row))
    Console(width=140).print(table)
    if arguments.keep:
        keep(rows, arguments.rounds, load)


def keep(rows: list[Row], rounds: int, load: float) -> None:
    """Puts rows into the table of results.md, in place of those of the same name. Each has its day and commit.

    :param load: the load average before the first round
    """
    where = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    taken = f"{datetime.now(UTC):%Y-%m-%d}, {rounds}, {where}, {commit()}, load {load:.1f}"
    before, after = RESULTS.read_text().split(RULE)
    kept = {line.split(" | ")[0]: line for line in after.splitlines()}
    for row in rows:
        line = "| " + " | ".join([*cells(row), taken]) + " |"
        kept[line.split(" | ")[0]] = line
    RESULTS.write_text(before + RULE + "\n".join(kept.values()) + "\n")


def commit() -> str:
    """Returns the short hash of the commit, with a plus if files differ from it."""
    described = ["git", "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+"]
    return subprocess.run(described, cwd=RESULTS.parent, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
