"""Every scenario of the table, played on Apache Kafka and on Barnabas: the answers are the same.

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
from .play import Play
from .scenarios import SCENARIOS
from .steps import ADVERTISED, HELPERS, Scenario, ask, scenario

ALLOWED = compare.allowed(Path(__file__).with_name("differences.toml"))
ROWS = [pytest.param(each, version, id=f"{each.name} v{version}") for each in SCENARIOS for version in each.versions]
ATTEMPTS = int(os.environ.get("BARNABAS_COMPAT_ATTEMPTS", "3"))
"""Apache Kafka's parts hear of a change one after the other: a row that differs is played again before it counts."""

numbers = itertools.count(1)


def transcript(broker: Any, steps: Any, prefix: str, versions: dict[str, int]) -> list[tuple[str, str, Any]]:
    play = Play(("127.0.0.1", broker.port), prefix, versions)
    play.run(steps)
    normal = compare.Normal(broker.port, time.time_ns() // 1_000_000, prefix)
    return [(label, api, normal.answer(answer, api=api)) for label, api, answer in play.transcript]


def found(brokers: tuple[Any, Any], row: Scenario, version: int) -> list[compare.Difference]:
    prefix = f"r{next(numbers)}-"
    versions = HELPERS | {row.api: version}
    with ThreadPoolExecutor(2) as pool:
        apache, ours = pool.map(lambda broker: transcript(broker, row.steps, prefix, versions), brokers)
    return compare.compare(apache, ours)


@pytest.mark.parametrize(("row", "version"), ROWS)
def test_answers_are_the_same(apache_kafka: Any, beside: Any, row: Scenario, version: int) -> None:
    entries = [entry for entry in ALLOWED if entry.is_about(row.name, version)]
    for _ in range(ATTEMPTS):
        differences = found((apache_kafka, beside), row, version)
        unexplained = [each for each in differences if not any(entry.covers(each) for entry in entries)]
        unused = [entry for entry in entries if not any(entry.covers(each) for each in differences)]
        if not unexplained and not unused:
            return
    assert not unexplained, "\n".join(map(str, unexplained))
    assert not unused, f"no longer different, take it off the list: {unused}"


def test_the_list_names_scenarios_that_there_are() -> None:
    known = {(row.name, version) for row in SCENARIOS for version in row.versions}
    for entry in ALLOWED:
        versions = entry.versions or [version for name, version in known if name == entry.scenario]
        assert versions, f"{entry.scenario} is no scenario"
        assert {(entry.scenario, version) for version in versions} <= known


def test_names_are_not_used_twice() -> None:
    names = [each.name for each in SCENARIOS]
    assert sorted(names) == sorted(set(names))


def test_versions_of_the_table_are_those_that_apache_kafka_serves(apache_kafka: Any) -> None:
    asked = scenario("versions", "ApiVersions", ask("ApiVersions"))
    play = Play(("127.0.0.1", apache_kafka.port), "", {"ApiVersions": 0})
    play.run(asked.steps)
    listed = {each["ApiKey"]: (each["MinVersion"], each["MaxVersion"]) for each in play.transcript[0][2]["ApiKeys"]}
    from .codec import message

    for api, served in ADVERTISED.items():
        expected = (0, served[1]) if api == "Produce" else served
        assert listed[message(f"{api}Request").api_key] == expected, api
