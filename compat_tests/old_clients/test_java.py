"""The Java clients of 0.9 to 1.0 from Maven Central; skipped without java or mvn.

The programs are in ``java/``; this module has only their expected results.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.apache_kafka.apache import FLAGS, cache

from .modern import plain, read, write

PROGRAM = Path(__file__).parent / "java" / "Old.java"
TRANSACTIONS = Path(__file__).parent / "java" / "OldTransactions.java"
T0 = 1_600_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4")

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>barnabas.compat</groupId><artifactId>old-clients</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>{}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""

Run = Callable[..., list[list[str]]]


def jars(version: str) -> Path:
    """Returns the folder with one client and its dependencies, fetched by Maven the first time."""
    home = cache() / f"clients-{version}"
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    if not (home / "complete").exists():
        maven = shutil.which("mvn")
        if maven is None:
            pytest.skip("mvn is not installed")
        home.mkdir(parents=True, exist_ok=True)
        (home / "pom.xml").write_text(POM.format(version))
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={home / 'jars'}"]
        command = [maven, "-q", "-B", "-f", str(home / "pom.xml"), *goal]
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if fetched.returncode:
            pytest.skip(f"mvn could not fetch kafka-clients {version}: {fetched.stdout.strip()[-300:]}")
        (home / "complete").touch()
    return home / "jars"


@pytest.fixture(params=["0.9.0.1", "0.10.2.2"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def run_with(folder: Path, program: Path, *arguments: str) -> list[list[str]]:
    """Returns the program's output, as lists of words."""
    command = ["java", *FLAGS, "-cp", f"{folder}/*", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.fixture
def run(bootstrap: str, version: str) -> Run:
    """Runs the program with that release."""
    folder = jars(version)
    return lambda *arguments: run_with(folder, PROGRAM, bootstrap, *map(str, arguments))


def test_all_clients_read_its_records(run: Run, bootstrap: str, topic: str, version: str) -> None:
    assert run("write", topic) == [["sent", str(n)] for n in range(40)]
    found = read(bootstrap, topic, 40)
    assert [plain(each) for each in found] == [
        (
            10 * at + n,
            None if n % 3 == 0 else f"key {n}",
            None if n % 4 == 3 else f"{codec} {n}",
        )
        for at, codec in enumerate(CODECS)
        for n in range(10)
    ]
    assert all((each.timestamp()[1] == -1) == version.startswith("0.9") for each in found)
    again = run("read", topic, 40, 1 << 20)
    assert [words[1:4] for words in again] == [
        [str(offset), key or "null", value or "null"] for offset, key, value in map(plain, found)
    ]


def test_it_reads_what_is_written_today(run: Run, bootstrap: str, topic: str, version: str) -> None:
    values = [f"{n} " * 100 for n in range(10)]
    for codec in CODECS:
        write(bootstrap, topic, [("key", value, T0 + n) for n, value in enumerate(values)], codec)
    found = run("read", topic, 40, 1 << 20)
    assert found == [
        ["read", str(10 * at + n), "key", value, "none" if version.startswith("0.9") else str(T0 + n)]
        for at in range(4)
        for n, value in enumerate(values)
    ]


def test_a_limit_that_is_too_low(run: Run, bootstrap: str, topic: str, version: str) -> None:
    write(bootstrap, topic, [(None, "x" * 500, T0)])
    found = run("read", topic, 1, 100)
    if version.startswith("0.9"):
        assert found == [["error", "RecordTooLargeException"]]
    else:
        assert [words[3] for words in found] == ["x" * 500]


def test_a_group_continues_at_its_committed_offsets(
    run: Run, bootstrap: str, topic: str, group: str, version: str
) -> None:
    write(bootstrap, topic, [(None, str(n), T0) for n in range(4)], "gzip")
    first = run("group", topic, group, 4)
    assert [words[3] for words in first[:-1]] == list("0123")
    write(bootstrap, topic, [(None, str(n), T0) for n in range(4, 8)], "gzip")
    second = run("group", topic, group, 4)
    assert [words[3] for words in second[:-1]] == list("4567")
    assert [first[-1], second[-1]] == [["committed", "4"], ["committed", "8"]]


def test_the_first_transactions(bootstrap: str, topic: str) -> None:
    """Responses to the client of 1.0, whose requests all have version 0."""
    found = run_with(jars("1.0.2"), TRANSACTIONS, bootstrap, topic)
    assert found == [
        ["sent", "0"],
        ["sent", "2"],
        ["sent", "4"],
        ["zombie", "ProducerFencedException"],
        ["committed", "[group at 9, 0:committed, 4:committed, 8:of the successor]"],
        ["everything", "[group at 9, 0:committed, 2:aborted, 4:committed, 6:of the zombie, 8:of the successor]"],
    ]
