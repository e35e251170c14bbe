"""kafka-python's tests from its source distribution: their layout, and their runs.

Knows only the address of the broker. The distribution lacks ``test/__init__.py``, which is empty, and the module that
starts brokers, which the tests do not need with ``KAFKA_URI``.
"""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path

RELEASE = "3.0.12"
DISTRIBUTION = f"kafka_python-{RELEASE}"
CLAIMED_VERSION = "4.3.1"
"""The configured version of the broker; the tests compare it with the broker's own."""

SERVICE = '''"""Brokers are started elsewhere: this says where, and that is all."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass

    stop = close


class SpawnedService:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("this test would start a broker of its own")
'''


class SuiteUnavailable(Exception):
    """The source distribution cannot be fetched; the message has the reason."""


def cache() -> Path:
    named = os.environ.get("BARNABAS_COMPAT_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "barnabas-compat"


def source_distribution() -> Path:
    """Returns the pinned release's archive, fetched by pip the first time."""
    archive = cache() / f"{DISTRIBUTION}.tar.gz"
    if not archive.exists():
        cache().mkdir(parents=True, exist_ok=True)
        wanted = ["--no-binary", ":all:", "--no-deps", "--dest", str(cache()), f"kafka-python=={RELEASE}"]
        download = [sys.executable, "-m", "pip", "download", "--quiet", *wanted]
        fetched = subprocess.run(download, capture_output=True, text=True, check=False, timeout=300)
        if fetched.returncode or not archive.exists():
            raise SuiteUnavailable(f"pip could not fetch kafka-python's source: {fetched.stderr.strip()[-300:]}")
    return archive


def lay_out(home: Path) -> Path:
    """Makes the tests' working folder below ``home``; returns it."""
    with tarfile.open(source_distribution()) as archive:
        ours = [member for member in archive if member.name.startswith(f"{DISTRIBUTION}/test/")]
        archive.extractall(home, ours, filter="data")
    tests = home / DISTRIBUTION / "test"
    (tests / "__init__.py").touch()
    (tests / "service.py").write_text(SERVICE)
    return tests.parent


def run(home: Path, bootstrap: str, names: Iterable[str] = (), *, seconds: float) -> Mapping[str, str]:
    """Runs the integration tests, or the named ones; returns ``passed``, ``failed`` or ``skipped`` of each."""
    folder, report = lay_out(home), home / "report.xml"
    wanted = [f"test/integration/{module}.py::{name}" for module, _, name in (name.partition("::") for name in names)]
    command = [sys.executable, "-m", "pytest", *(wanted or ["test/integration"]), "-p", "no:randomly"]
    options = ["-p", "no:cacheprovider", "-q", "--timeout=20", f"--junit-xml={report}", "-o", "junit_family=xunit1"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_VERSION": CLAIMED_VERSION,
        "KAFKA_ROOT": str(home),  # must be a folder; the tests read it only to start brokers
    }
    with (home / "output").open("ab") as output:
        subprocess.run(
            [*command, *options],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            timeout=seconds,
            check=False,
        )
    return outcomes(report)


def outcomes(report: Path) -> Mapping[str, str]:
    """Reads pytest's JUnit report."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        module = str(case.get("classname")).removeprefix("test.integration.")
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{module}::{case.get('name')}"] = outcome
    return found
