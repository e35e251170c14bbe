"""franz-go against the broker: codecs, a cooperative group by pattern, its admin, transactions; skipped without go."""

import json
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def go(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["go", *arguments], cwd=HERE, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="session")
def smoke() -> Path:
    """The program, built the first time and again when its source or a pinned module changes."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    source = b"".join((HERE / name).read_bytes() for name in ("smoke.go", "transactions.go", "go.mod", "go.sum"))
    named = os.environ.get("BARNABAS_COMPAT_CACHE")
    home = Path(named) if named else Path.home() / ".cache" / "barnabas-compat"
    program = home / f"franz-go-{sha256(source).hexdigest()[:12]}"
    if not program.exists():
        fetched = go("mod", "download")
        if fetched.returncode:
            pytest.skip(f"go could not fetch franz-go: {fetched.stderr.strip()[-300:]}")
        home.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(f".{os.getpid()}")
        built = go("build", "-o", str(unfinished), ".")
        assert built.returncode == 0, built.stderr
        unfinished.replace(program)
    return program


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
