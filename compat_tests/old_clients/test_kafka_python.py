"""kafka-python of 2019 and 2020, configured for even older brokers: its reads and writes beside a current client's.

The releases are installed once a session, each in its own folder; skipped with the reason if that fails.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .modern import plain, read, write

PROGRAM = Path(__file__).with_name("program.py")
T0 = 1_600_000_000_000
CODECS = [None, "gzip", "snappy", "lz4"]
RECORDS = [["key", "one " * 50, T0 + 5], [None, "two " * 50, T0 + 2], ["gone", None, T0 + 9]]
OLD = [
    ("1.4.7", (0, 8, 1)),
    ("1.4.7", (0, 8, 2)),
    ("1.4.7", (0, 9)),
    ("1.4.7", (0, 10)),
    ("2.0.2", (0, 10, 2)),
]

Run = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the folder of a release of kafka-python, with its dependencies for lz4 and newer Pythons."""
    there: dict[str, Path | str] = {}

    def install(version: str) -> Path:
        if version not in there:
            folder = tmp_path_factory.mktemp(f"kafka-python-{version}")
            command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder)]
            wanted = [f"kafka-python=={version}", "xxhash", "six"]
            try:
                done = subprocess.run([*command, *wanted], capture_output=True, text=True, timeout=120, check=False)
                complaint = done.stderr.strip()[-300:] if done.returncode else ""
            except subprocess.TimeoutExpired:
                complaint = "it takes too long"
            there[version] = f"kafka-python {version} cannot be installed: {complaint}" if complaint else folder
        found = there[version]
        if isinstance(found, str):
            pytest.skip(found)
        return found

    return install


@pytest.fixture(params=OLD, ids=lambda old: f"{old[0]} as {'.'.join(map(str, old[1]))}")
def old(request: pytest.FixtureRequest) -> tuple[str, tuple[int, ...]]:
    version, api_version = request.param
    return version, api_version


@pytest.fixture
def run(bootstrap: str, old: tuple[str, tuple[int, ...]], installed: Callable[[str], Path]) -> Run:
    """Runs jobs with the old client, one after the other in one process."""
    version, api_version = old
    folder = installed(version)

    def do(*jobs: dict[str, Any]) -> list[Any]:
        order = {"bootstrap": bootstrap, "api_version": api_version, "jobs": jobs}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(PROGRAM)],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | {"PYTHONPATH": str(folder)},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        printed = json.loads(done.stdout)
        assert printed["version"] == version
        answers: list[Any] = printed["answers"]
        return answers

    return do


def codecs(api_version: tuple[int, ...]) -> list[str | None]:
    """Returns the codecs; lz4 came with 0.8.2."""
    return CODECS if api_version >= (0, 8, 2) else [*CODECS[:3], None]


def times(api_version: tuple[int, ...], *timestamps: int) -> list[int | None]:
    """Returns timestamps; messages had none before 0.10."""
    return [each if api_version >= (0, 10) else None for each in timestamps]


def test_it_writes_and_both_read(run: Run, bootstrap: str, topic: str, old: tuple[str, tuple[int, ...]]) -> None:
    has_times = old[1] >= (0, 10)
    records = RECORDS if has_times else [[key, value, None] for key, value, _ in RECORDS]
    *written, again, middle = run(
        *({"do": "produce", "topic": topic, "codec": codec, "records": records} for codec in codecs(old[1])),
        {"do": "consume", "topic": topic, "count": 12},
        {"do": "consume", "topic": topic, "count": 8, "offset": 4},
    )
    assert [offset for entry in written for offset, _ in entry] == list(range(12))
    assert {timestamp for entry in written for _, timestamp in entry} == (
        {T0 + 5, T0 + 2, T0 + 9} if has_times else {-1}
    )
    entry = [
        [n, timestamp, 0 if has_times else None, key, value, []]
        for n, (key, value, timestamp) in enumerate(records * 4)
    ]
    assert again == entry
    assert middle == entry[4:]
    found = read(bootstrap, topic, 12)
    assert [plain(each) for each in found] == [(n, key, value) for n, (key, value, _) in enumerate(RECORDS * 4)]
    if has_times:
        assert [each.timestamp()[1] for each in found] == [T0 + 5, T0 + 2, T0 + 9] * 4
    else:
        assert {each.timestamp()[1] for each in found} == {-1}


def test_it_reads_what_is_written_today(run: Run, bootstrap: str, topic: str, old: tuple[str, tuple[int, ...]]) -> None:
    for codec in ("none", "gzip", "snappy", "lz4"):
        write(bootstrap, topic, [(key, value, timestamp) for key, value, timestamp in RECORDS], codec)
    whole, middle = run(
        {"do": "consume", "topic": topic, "count": 12}, {"do": "consume", "topic": topic, "count": 5, "offset": 7}
    )
    (kind,) = times(old[1], 0)
    found = [
        [n, *times(old[1], timestamp), kind, key, value, []] for n, (key, value, timestamp) in enumerate(RECORDS * 4)
    ]
    assert whole == found
    assert middle == found[7:]


def test_a_group_continues_at_its_committed_offsets(
    run: Run, bootstrap: str, topic: str, group: str, old: tuple[str, tuple[int, ...]]
) -> None:
    write(bootstrap, topic, [(None, str(n), T0) for n in range(10)], "gzip")
    job = {"do": "group", "topic": topic, "group": group, "count": 4, "assign": old[1] < (0, 9)}
    first, second = run(job, job)
    assert [each[4] for each in first["found"]] == list("0123")
    assert first["committed"] == 4
    assert [each[4] for each in second["found"]] == list("4567")
    assert second["committed"] == 8


def test_start_and_end_offsets_of_a_topic(
    run: Run, bootstrap: str, topic: str, old: tuple[str, tuple[int, ...]]
) -> None:
    write(bootstrap, topic, [(None, str(n), T0 + n) for n in range(5)], "gzip")
    has_times = old[1] >= (0, 10, 1)
    (found,) = run({"do": "offsets", "topic": topic} | ({"timestamp": T0 + 3} if has_times else {}))
    assert found == {"first": 0, "next": 5} | ({"at": [3, T0 + 3]} if has_times else {})


def test_a_message_above_its_limit(run: Run, bootstrap: str, topic: str, old: tuple[str, tuple[int, ...]]) -> None:
    """Before 0.10.1 the client must raise an error, since its limit is too small; later it receives the message."""
    write(bootstrap, topic, [(None, "x" * 500, T0)])
    (found,) = run({"do": "too_small", "topic": topic, "limit": 100})
    if old[1] < (0, 10, 1):
        assert found == "RecordTooLargeError"
    else:
        assert [each[4] for each in found] == ["x" * 500]
