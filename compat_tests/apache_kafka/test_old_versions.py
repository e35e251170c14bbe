"""Requests of clients from before Kafka 0.11, played on the last Apache Kafka that served them and on Barnabas.

Knows only how to play and compare; the requests are in ``old_versions.py``.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from barnabas.log.files import DiskFiles
from barnabas.log.upgrading import upgrade

from . import compare
from .apache import PREVIOUS, ApacheKafka, KafkaUnavailable, jars, run_java
from .conftest import ALIKE
from .message_sets import message_set, wrapper
from .old_versions import MODERN, SCENARIOS, THREE, TIMES
from .steps import HELPERS, Scenario, ask, create, produce_body
from .test_differential import numbers, transcript

BATCHES_SINCE = 4
"""The first version of Fetch that knows record batches."""

ALLOWED = compare.allowed(Path(__file__).with_name("differences_old.toml"))


@pytest.fixture(scope="module")
def previous_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A running Apache Kafka 3.9."""
    try:
        jars(PREVIOUS)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    with ApacheKafka(tmp_path_factory.mktemp("previous-kafka"), ALIKE, version=PREVIOUS) as broker:
        yield broker


def as_many(theirs: Any, mine: Any) -> None:
    """Cuts both to the same number of messages, if both have some: compressors decide how many fit."""
    for one, other in zip(partitions(theirs), partitions(mine), strict=False):
        fewer = min(len(one["Records"] or ()), len(other["Records"] or ()))
        if fewer:
            del one["Records"][fewer:], other["Records"][fewer:]


def partitions(answer: Any) -> list[dict[str, Any]]:
    if not isinstance(answer, dict):
        return []
    return [each for topic in answer.get("Responses", ()) for each in topic["Partitions"]]


def problems(brokers: tuple[Any, Any], row: Scenario, version: int) -> list[str]:
    prefix = f"old{next(numbers)}-"
    versions = HELPERS | MODERN | {row.api: version}
    with ThreadPoolExecutor(2) as pool:
        apache, ours = pool.map(lambda broker: transcript(broker, row.steps, prefix, versions), brokers)
    if row.api == "Fetch" and version < BATCHES_SINCE:
        for (_, _, theirs), (_, _, mine) in zip(apache, ours, strict=False):
            as_many(theirs, mine)
    return compare.verdict(compare.compare(apache, ours), ALLOWED, row.name, version)


@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row.name)
def test_answers_are_the_same(previous_kafka: ApacheKafka, beside: Any, row: Scenario) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda version: problems((previous_kafka, beside), row, version), row.versions))
    assert not any(found), "\n".join(each for wrong in found for each in wrong)


# ---------------------------------------------------------------- files

TOOL = "kafka.tools.DumpLogSegments"
OF_ITS_OWN = re.compile(r"(position|size|CRC|crc|batchSize|payloadSize): -?\d+ ?|Dumping \S+|Starting offset: \d+")
"""What compressors and folders decide."""

SETS = [
    *(message_set(magic, *contents) for magic in (0, 1) for contents in (THREE, TIMES)),
    *(wrapper(magic, codec, *TIMES) for magic in (0, 1) for codec in (1, 2, 3)),
]


def dumped(version: str, *segments: Path) -> list[str]:
    """Returns the lines of Apache Kafka's tool for each batch and record."""
    files = ",".join(map(str, segments))
    run = run_java(version, TOOL, "--files", files, "--deep-iteration", "--print-data-log")
    assert run.returncode == 0, run.stderr
    assert "xception" not in run.stdout + run.stderr
    assert "isvalid: false" not in run.stdout
    return [OF_ITS_OWN.sub("", line).strip() for line in run.stdout.splitlines()]


def test_segments_are_the_same(previous_kafka: ApacheKafka, beside: Any) -> None:
    """Both write the same messages to equal files, according to Apache Kafka's own tool."""
    steps = [*create("~t"), *(ask("Produce", v=2, quiet=True, **produce_body("~t", each)) for each in SETS)]
    prefix = f"old{next(numbers)}-"
    for broker in (previous_kafka, beside):
        assert transcript(broker, steps, prefix, HELPERS | MODERN) == []
    segment = Path("data", f"{prefix}t-0", f"{0:020d}.log")
    found = [dumped(PREVIOUS, broker.home / segment) for broker in (previous_kafka, beside)]
    assert found[0] == found[1]
    assert sum(line.startswith("| offset") for line in found[0]) == 38


RECORD = re.compile(r"\| offset: (\d+) .*?(?:CreateTime|NoTimestampType): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)")
CONTENT = re.compile(r"(?: key: \S+)?(?: payload: \S+)?$")


def test_segments_of_old_are_rewritten(previous_kafka: ApacheKafka, tmp_path: Path) -> None:
    """Apache Kafka's tool finds the same records in a segment of old messages and in the rewritten one."""
    data, offset = b"", 0
    for magic in (0, 1):
        for contents in (THREE, TIMES):
            for codec in (0, 1, 2, 3):
                placed = [each._replace(offset=offset + at) for at, each in enumerate(contents)]
                if codec and magic:
                    placed = [each._replace(offset=at) for at, each in enumerate(contents)]
                end = offset + len(contents) - 1
                data += wrapper(magic, codec, *placed, offset=end) if codec else message_set(magic, *placed)
                offset = end + 1
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(data)
    upgrade(DiskFiles(), str(after), DiskFiles().sizes(str(after)), 0)
    lines = [dumped(PREVIOUS, folder / f"{0:020d}.log") for folder in (before, after)]
    found = [
        [(*match.groups(), CONTENT.search(line)[0]) for line in each if (match := RECORD.search(line))]  # type: ignore[index]
        for each in lines
    ]
    assert [int(each[0]) for each in found[1]] == list(range(offset))
    assert found[0] == found[1]
