"""``python -m tests.history``: runs random clients against a broker under faults, and checks what they observed.

Exits with 1 after an anomaly; the folder has the history and the plan.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from compat_tests.network import APART, can_delay
from tests.history import clocks
from tests.history.brokers import BROKERS, CLOCKED, NETWORKED
from tests.history.plan import OF_CLOCKS, OF_DELAYS, OF_NETWORKS, WEIGHTS, plan
from tests.history.report import counted, report
from tests.history.run import run

IS_APART = "BARNABAS_HISTORY_IS_APART"
"""An environment variable: this process is in its own network namespace."""

COUNTS = "counts.json"
"""The file with the counts in the run's folder, which are added for several runs."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.history", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long clients work under faults (60)")
    parser.add_argument("--seed", type=int, default=7, help="of the plan (7)")
    parser.add_argument("--level", type=int, choices=(1, 2), default=2, help="transaction.version (2)")
    parser.add_argument("--broker", choices=sorted(BROKERS), default="barnabas")
    parser.add_argument(
        "--without",
        action="append",
        choices=sorted(WEIGHTS | OF_NETWORKS | OF_DELAYS | OF_CLOCKS),
        default=[],
        help="leave out a fault",
    )
    parser.add_argument(
        "--late-of-old",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether EndTxn and TxnOffsetCommit of transaction.version 1 may be late, too",
    )
    parser.add_argument(
        "--consumer-protocol", action="store_true", help="most of librdkafka's members speak that of KIP-848"
    )
    parser.add_argument(
        "--spare-librdkafka", action="store_true", help="its processes have other clients: for a run of many minutes"
    )
    parser.add_argument("--plant", metavar="MISTAKE", help="one of planted.py, to see whether it is found")
    parser.add_argument("--directory", type=Path, help="where the broker's data and the history go; a new one")
    arguments = parser.parse_args()
    if arguments.broker in NETWORKED and not os.environ.get(IS_APART):
        os.execvpe(
            APART[0], [*APART, sys.executable, "-m", "tests.history", *sys.argv[1:]], os.environ | {IS_APART: "1"}
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stops the broker, and writes the history
    made = plan(
        arguments.seed,
        arguments.seconds,
        arguments.level,
        without=frozenset(arguments.without),
        late_of_old=arguments.late_of_old,
        consumer_protocol=arguments.consumer_protocol,
        networked=arguments.broker in NETWORKED,
        delayed=arguments.broker in NETWORKED and can_delay(),
        skewed=arguments.broker in CLOCKED and clocks.library() is not None,
        spares_librdkafka=arguments.spare_librdkafka,
    )
    home = arguments.directory or Path(tempfile.mkdtemp(prefix="history-"))
    outcome = run(made, home, arguments.broker, arguments.plant)
    (home / COUNTS).write_text(json.dumps(counted(outcome)))
    sys.stdout.write(f"{report(outcome)}, the history is {home / 'history.jsonl'}\n")
    return 0 if outcome.verdict.clean and not outcome.complaints else 1


if __name__ == "__main__":
    sys.exit(main())
