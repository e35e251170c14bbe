"""Every scenario of the table, played on Apache Kafka and on Barnabas: the responses are equal.

Knows only how to play and compare; what is asked stands in ``scenarios/``, what may differ in ``differences.toml``.
"""

import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from . import compare
from .codec import message
from .play import Play
from .scenarios import SCENARIOS
from .steps import ADVERTISED, HELPERS, Scenario, ask, scenario

ALLOWED = compare.allowed(Path(__file__).with_name("differences.toml"))
ATTEMPTS = int(os.environ.get("BARNABAS_COMPAT_ATTEMPTS", "3"))
"""Attempts: Apache Kafka's components apply a change one after the other, so a different result is played again."""

TOGETHER = 6
"""The number of versions of a scenario that run concurrently; each has its own topics and groups."""

numbers = itertools.count(1)


def transcript(broker: Any, steps: Any, prefix: str, versions: dict[str, int]) -> list[tuple[str, str, Any]]:
    play = Play(("127.0.0.1", broker.port), prefix, versions)
    play.run(steps)
    normal = compare.Normal(broker.port, time.time_ns() // 1_000_000, prefix, play.saved)
    return [(label, api, normal.answer(answer, api=api)) for label, api, answer in play.transcript]


def problems(brokers: tuple[Any, Any], row: Scenario, version: int) -> list[str]:
    """Returns the errors of one version: differences that are not in the list, and entries that do not occur."""
    prefix = f"r{next(numbers)}-"
    versions = HELPERS | {row.api: version}
    with ThreadPoolExecutor(2) as pool:
        apache, ours = pool.map(lambda broker: transcript(broker, row.steps, prefix, versions), brokers)
    return compare.verdict(compare.compare(apache, ours), ALLOWED, row.name, version)


@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row.name)
def test_answers_are_the_same(apache_kafka: Any, beside: Any, row: Scenario) -> None:
    brokers = (apache_kafka, beside)
    with ThreadPoolExecutor(1 if row.alone else TOGETHER) as pool:
        found = dict(
            zip(row.versions, pool.map(lambda version: problems(brokers, row, version), row.versions), strict=True)
        )
    for version, wrong in found.items():
        for _ in range(ATTEMPTS - 1):
            if wrong:
                wrong = found[version] = problems(brokers, row, version)
    if any(found.values()):
        pytest.fail("\n".join(itertools.chain(*found.values())), pytrace=False)


def test_the_list_names_scenarios_that_there_are() -> None:
    known = {row.name: set(row.versions) for row in SCENARIOS}
    for entry in ALLOWED:
        assert entry.scenario in known, f"{entry.scenario} is no scenario"
        assert set(entry.versions or ()) <= known[entry.scenario], entry


def test_names_are_not_used_twice() -> None:
    names = [each.name for each in SCENARIOS]
    assert sorted(names) == sorted(set(names))


def test_every_api_is_played_at_every_version() -> None:
    played_versions = {(row.api, version) for row in SCENARIOS for version in row.versions}
    assert played_versions == {
        (api, version) for api, (first, last) in ADVERTISED.items() for version in range(first, last + 1)
    }


def test_versions_of_the_table_are_those_that_apache_kafka_serves(apache_kafka: Any) -> None:
    play = Play(("127.0.0.1", apache_kafka.port), "", {"ApiVersions": 0})
    play.run(scenario("versions", "ApiVersions", ask("ApiVersions")).steps)
    listed = {each["ApiKey"]: (each["MinVersion"], each["MaxVersion"]) for each in play.transcript[0][2]["ApiKeys"]}
    for api, served in ADVERTISED.items():
        expected = (0, served[1]) if api == "Produce" else served
        assert listed[message(f"{api}Request").api_key] == expected, api
