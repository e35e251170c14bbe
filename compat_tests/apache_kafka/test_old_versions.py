"""What only clients from before Kafka 0.11 ask, played on the last Apache Kafka that answered it and on Barnabas.

Knows only how to play and compare; what is asked stands in ``old_versions.py``.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from . import compare
from .apache import PREVIOUS, ApacheKafka, KafkaUnavailable, jars
from .conftest import ALIKE
from .old_versions import MODERN, SCENARIOS
from .steps import HELPERS, Scenario
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
    """Leave both the same count of messages, if both have some: how well compressors pack decides how many fit."""
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
    differences = compare.compare(apache, ours)
    entries = [entry for entry in ALLOWED if entry.is_about(row.name, version)]
    found = [each for each in differences if not any(entry.covers(each) for entry in entries)]
    unused = [entry for entry in entries if not any(entry.covers(each) for each in differences)]
    return [f"version {version}: {each}" for each in found] + [
        f"version {version}: no longer different, take it off the list: {entry}" for entry in unused
    ]


@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row.name)
def test_answers_are_the_same(previous_kafka: ApacheKafka, beside: Any, row: Scenario) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda version: problems((previous_kafka, beside), row, version), row.versions))
    assert not any(found), "\n".join(each for wrong in found for each in wrong)
