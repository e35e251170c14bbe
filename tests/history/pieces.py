"""A long run as many short ones with consecutive seeds, and their sums.

``python -m tests.history.pieces --seconds 1800`` is run by ``make history``. Each piece has its own process: a client
library that ends its process (by an assertion of librdkafka) ends only one piece, which is counted and replaced, and is
no fault of the broker; so does one that hangs (in a callback of librdkafka). Unknown options are those of ``python -m
tests.history``.
"""

import argparse
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.history.__main__ import COUNTS
from tests.history.report import Counts, table

LONGEST_END_S = 240.0
"""The time for a piece to start, and to read everything at its end, in seconds."""

ROOT = Path(__file__).parent.parent.parent


def piece(seed: int, home: Path, options: list[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """Runs one piece in its own process."""
    command = [sys.executable, "-m", "tests.history", "--seed", str(seed), "--directory", str(home), *options]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -signal.SIGALRM, "", f"it has not ended within {limit_s:.0f} s")
    finally:
        end_brokers(home)


def end_brokers(home: Path) -> None:
    """Kills the brokers of a piece that was killed itself."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(home).encode() + b"/" in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def was_ended_by_a_client(ended: subprocess.CompletedProcess[str]) -> bool:
    """Returns whether librdkafka has failed an assertion, or hangs."""
    return ended.returncode == -signal.SIGALRM or (ended.returncode == -signal.SIGABRT and "rdkafka" in ended.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.history.pieces", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1800, help="all pieces together (1800)")
    parser.add_argument("--piece", type=float, default=180, help="how long one is (180)")
    parser.add_argument("--seed", type=int, default=7, help="of the first (7)")
    arguments, options = parser.parse_known_args()
    home = Path(tempfile.mkdtemp(prefix="histories-"))
    missing, seed, codes, total = math.ceil(arguments.seconds / arguments.piece), arguments.seed, [], Counts()
    aborted = 0
    while missing:
        place = home / str(seed)
        ended = piece(seed, place, ["--seconds", str(arguments.piece), *options], 2 * arguments.piece + LONGEST_END_S)
        seed += 1
        if was_ended_by_a_client(ended):
            aborted += 1
            sys.stdout.write(f"seed {seed - 1}: ended by a client: {ended.stderr.strip()}\n")
            continue
        missing -= 1
        codes.append(ended.returncode)
        sys.stdout.write(f"seed {seed - 1}: {ended.stdout.rstrip().rpartition(chr(10))[2]}\n")
        if ended.returncode:
            sys.stdout.write(ended.stdout + ended.stderr)
        if (place / COUNTS).exists():
            add(total, json.loads((place / COUNTS).read_text()))
        sys.stdout.flush()
    sys.stdout.write(f"\n{table(total)}\n{len(codes)} pieces, and {aborted} that a client ended\n")
    return 1 if any(codes) else 0


def add(total: Counts, counts: Counts) -> None:
    """Adds a piece's counts to the sums."""
    for title, rows in counts.items():
        sums = total.setdefault(title, {})
        for name, count in rows.items():
            sums[name] = sums.get(name, 0) + count


if __name__ == "__main__":
    sys.exit(main())
