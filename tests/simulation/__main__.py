"""Runs seeds, one on each core; a failing one is shrunk, and printed with the command that replays it.

python -m tests.simulation 1-100
python -m tests.simulation 1-1000000 --hours 2
python -m tests.simulation 42 --trace trace.txt
python -m tests.simulation 1-500 --plant vote_twice
"""

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.history.records import History
from tests.simulation.jobs import side_by_side
from tests.simulation.mistakes import MISTAKES
from tests.simulation.run import Outcome, run
from tests.simulation.shrinking import shrink

LAST_LINES = 30
"""The number of lines that are shown of the trace of a failing seed."""
PROGRESS = 100
"""The number of seeds after which their count is printed."""


def say(line: str) -> None:
    """Prints a line immediately."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.simulation", description="Replays whole clusters from seeds.")
    parser.add_argument("seeds", help="one, or the first and the last, such as 1-100")
    parser.add_argument("--hours", type=float, default=float("inf"), help="begins no seed after them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many seeds run at once")
    parser.add_argument("--seconds", type=float, default=30.0, help="virtual seconds under faults")
    parser.add_argument("--until", type=float, help="virtual seconds after which faults and load end")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--without", default="", help="numbers of faults to leave out, such as 0,3")
    parser.add_argument(
        "--plant", choices=MISTAKES, help="a mistake to look for; ends with the first seed that finds it"
    )
    parser.add_argument("--whole", action="store_true", help="does not make a failing run smaller")
    parser.add_argument("--trace", type=Path, help="writes a line for each message and each fault into that file")
    return parser.parse_args(arguments)


def main() -> int:
    """Returns the number of seeds that fail, as the command's exit status."""
    options = options_of()
    with pytest.MonkeyPatch.context() as patch:
        if options.plant:
            MISTAKES[options.plant](patch)
        return run_all(options)


def run_all(options: argparse.Namespace) -> int:
    """Runs the seeds, until Ctrl-C at the latest, and tells how many there were. Returns how many fail."""
    first, _, last = options.seeds.partition("-")
    left_out = frozenset(int(number) for number in options.without.split(",") if number)
    settings: dict[str, Any] = {"seconds": options.seconds, "faulty": not options.calm}
    failures, done, begin = 0, 0, time.monotonic()

    def seeds() -> Iterator[int]:
        for seed in range(int(first), int(last or first) + 1):
            if time.monotonic() - begin > options.hours * 3600:
                return
            yield seed

    def work(seed: int) -> Outcome:
        outcome = run_one(seed, options.trace, left_out=left_out, until=options.until, **settings)
        return replace(outcome, history=History())

    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(side_by_side(work, seeds(), options.jobs)) as found:
        for outcome in found:
            done += 1
            if outcome.problems:
                failures += 1
                if options.whole or left_out or options.until:
                    tell(outcome)
                else:
                    tell_shrunk(outcome, settings, options.plant)
                if options.plant:
                    break
            elif last == "":
                say(f"seed {outcome.seed}: nothing is wrong; {outcome.messages} messages, hash {outcome.digest}")
            if done % PROGRESS == 0:
                say(f"{done} seeds, up to {outcome.seed}, in {time.monotonic() - begin:.0f} s")
    say(f"{done} seeds in {time.monotonic() - begin:.0f} s, {failures} of them fail")
    return min(failures, 100)


def run_one(seed: int, trace: Path | None, **settings: Any) -> Outcome:
    """Runs a seed, and writes its trace."""
    if trace is None:
        return run(seed, **settings)
    with trace.open("w") as file:
        return run(seed, **settings, trace=lambda line: file.write(line + "\n"))


def tell(outcome: Outcome) -> None:
    """Prints the failure of a run."""
    say(f"seed {outcome.seed} after {outcome.virtual_s:.3f} s: {len(outcome.problems)} problems")
    for problem in outcome.problems[:5]:
        say(f"  {problem}")
    for number, fault in outcome.faults.items():
        say(f"  fault {number} at {fault.at:.3f}: {fault}")


def tell_shrunk(failed: Outcome, settings: dict[str, Any], planted: str | None) -> None:
    """Prints the first problem, then the smallest failing run with the end of its trace and the command."""
    say(f"seed {failed.seed} fails, and is made smaller: {failed.problems[0]}")
    found = shrink(failed.seed, failed, **settings)
    lines: deque[str] = deque(maxlen=LAST_LINES)
    outcome = run(failed.seed, left_out=found.left_out, until=found.until, **settings, trace=lines.append)
    tell(outcome)
    for line in lines:
        say(f"  | {line}")
    words = ["python", "-m", "tests.simulation", str(failed.seed), "--seconds", f"{settings['seconds']:g}"]
    words += ["--until", f"{found.until:g}"]
    words += ["--without", ",".join(map(str, sorted(found.left_out)))] * bool(found.left_out)
    words += ["--plant", planted] if planted else []
    say(f"  {shlex.join([*words, '--trace', 'trace.txt'])}")


if __name__ == "__main__":
    sys.exit(main())
