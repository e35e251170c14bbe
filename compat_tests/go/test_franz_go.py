"""franz-go against the broker: codecs, a cooperative group by pattern, its admin, transactions; skipped without go."""

import json
import subprocess
from pathlib import Path

import pytest

from compat_tests.go.program import BUILD_SECONDS, built

pytestmark = [pytest.mark.xdist_group("go"), pytest.mark.timeout(BUILD_SECONDS + 120)]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="session")
def smoke() -> Path:
    return built()


def test_franz_go(smoke: Path, bootstrap: str, topic: str) -> None:
    ran = subprocess.run([smoke, bootstrap, topic], capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["retention"] == "99999999"
    assert seen["values"] == {f"{codec}-{n}": 1 for codec in CODECS for n in range(40)}
    assert seen["headers"] == 200
    assert (seen["protocol"], seen["shares"]) == ("cooperative-sticky", [2, 2])
    assert seen["ends"] == {str(partition): 50 for partition in range(4)}
    assert (seen["lag"], seen["emptied"], seen["starts"]) == (0, "Empty", 2)
    transacted = seen["transacted"]
    assert transacted["outputs"] == {str(index): [str(n) for n in range(index, 20, 2)] for index in (0, 1)}
    assert transacted["committed"] == {"0": 10, "1": 10}
    assert transacted["ended"]["aborted"] == transacted["ended"]["committed"] > 5
    assert (transacted["ongoing"], transacted["finally"]) == ("1 Ongoing 1", "CompleteAbort")
    assert transacted["rises"]  # with each transaction: transaction.version is 2
    assert transacted["fenced"].startswith(("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")), transacted["fenced"]
