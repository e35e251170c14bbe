"""kafkajs, with older API versions than other clients, against the broker. Skipped if it cannot be installed."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.node.installed import installed

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def modules() -> Path:
    return installed()


@pytest.fixture
def run(modules: Path, bootstrap: str, topic: str) -> Callable[[str], dict[str, Any]]:
    """Returns the output of one of the programs."""

    def do(program: str) -> dict[str, Any]:
        ran = subprocess.run(
            ["node", str(HERE / program), bootstrap, topic],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            env={**os.environ, "NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        )
        assert ran.returncode == 0, ran.stderr
        seen: dict[str, Any] = json.loads(ran.stdout)
        return seen

    return do


def test_kafkajs(run: Callable[[str], dict[str, Any]]) -> None:
    seen = run("smoke.js")
    assert (seen["created"], seen["listed"], seen["retention"]) == (True, True, "99999")
    assert {(each["partition"], each["baseOffset"]) for each in seen["sent"]} == {(0, "2"), (1, "1")}

    def record(partition: int, offset: int, n: int) -> dict[str, object]:
        return {"partition": partition, "offset": str(offset), "key": f"k{n}", "value": f"v{n}", "header": str(n)}

    by_place = sorted(seen["first"], key=lambda each: (each["partition"], int(each["offset"])))
    zero, one = [(0, 0), (1, 2), (2, 0), (3, 2)], [(0, 1), (1, 1)]
    assert by_place == [record(0, *place) for place in zero] + [record(1, *place) for place in one]
    assert seen["group"] == {"state": "Stable", "members": 1}
    (committed,) = seen["offsets"]
    assert {each["partition"]: each["offset"] for each in committed["partitions"]} == {0: "4", 1: "2"}
    assert seen["second"] == [{"partition": 1, "offset": "2", "key": "last", "value": None}]
    assert {each["partition"]: each["offset"] for each in seen["ends"]} == {0: "4", 1: "3"}


def test_transactions(run: Callable[[str], dict[str, Any]]) -> None:
    seen = run("transactions.js")
    assert seen["fenced"] in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    zero = ["0:commit 5", "1:more", "6:commit 7", "7:more", "11:of the successor"]
    one = ["0:commit 5", "4:commit 7"]
    assert seen["committed"] == [zero, one]
    assert seen["everything"] == [
        ["0:commit 5", "1:more", "3:abort 6", "4:more", "6:commit 7", "7:more", "9:left open", "11:of the successor"],
        ["0:commit 5", "2:abort 6", "4:commit 7"],
    ]
    assert seen["offset"] == "7"
