"""Runs seeds, one after the other; a failing one is told with the command that replays it.

python -m tests.simulation 1-100
python -m tests.simulation 42 --trace trace.txt
"""

import argparse
import sys
import time
from pathlib import Path

from tests.simulation.run import Outcome, run


def say(line: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Returns the number of seeds that fail, as the command's exit status."""
    parser = argparse.ArgumentParser("python -m tests.simulation", description="Replays whole clusters from seeds.")
    parser.add_argument("seeds", help="one, or the first and the last, such as 1-100")
    parser.add_argument("--seconds", type=float, default=30.0, help="virtual seconds under faults")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--without", default="", help="numbers of faults to leave out, such as 0,3")
    parser.add_argument("--trace", type=Path, help="writes a line for each message and each fault into that file")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    left_out = frozenset(int(number) for number in options.without.split(",") if number)
    failures, begin = 0, time.monotonic()
    for seed in range(int(first), int(last or first) + 1):
        settings = {"seconds": options.seconds, "faulty": not options.calm, "left_out": left_out}
        if options.trace is None:
            outcome = run(seed, **settings)
        else:
            with options.trace.open("w") as file:
                outcome = run(seed, **settings, trace=lambda line: file.write(line + "\n"))
        if outcome.problems:
            failures += 1
            tell(outcome, options.seconds)
        elif last == "":
            say(f"seed {seed}: nothing is wrong; {outcome.messages} messages, hash {outcome.digest}")
    seconds = time.monotonic() - begin
    say(f"{int(last or first) - int(first) + 1} seeds in {seconds:.0f} s, {failures} of them fail")
    return min(failures, 100)


def tell(outcome: Outcome, seconds: float) -> None:
    """Prints what is wrong in a run, and how it is replayed."""
    say(f"seed {outcome.seed} after {outcome.virtual_s:.3f} s: {len(outcome.problems)} problems")
    for problem in outcome.problems[:5]:
        say(f"  {problem}")
    for number, fault in enumerate(outcome.faults):
        say(f"  fault {number} at {fault.at:.3f}: {fault}")
    say(f"  python -m tests.simulation {outcome.seed} --seconds {seconds:g} --trace trace.txt")


if __name__ == "__main__":
    sys.exit(main())
