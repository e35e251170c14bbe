"""Responses with the StandardAuthorizer, without rights and with some, are equal on Apache Kafka and on Barnabas.

Knows only how to play and compare; the requests are in ``rights_scenarios.py`` and ``rights_by_login.py``, what may
differ in ``differences_rights.toml``. Each API is tested at its first and its last version.
"""

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from compat_tests.ports import free_port
from compat_tests.running import BarnabasProcess

from . import compare, rights_by_login
from .apache import ApacheKafka
from .conftest import ALIKE, wake_coordinators
from .play import Login, Play
from .rights_scenarios import SCENARIOS as BY_ADDRESS
from .rights_steps import ALL, CLUSTER, GROUP, TOKEN, TOPIC, TXN, USER, acl
from .steps import HELPERS, Scenario, ask

pytestmark = pytest.mark.xdist_group("rights")

SCENARIOS = [*BY_ADDRESS, *rights_by_login.SCENARIOS]
RUNS = 400
"""The number of times that a scenario can be played by its own users."""

USERS = " ".join(f'user_{name}{number}="secret"' for number in range(RUNS) for name in ("user", "other"))
GUARDED = ALIKE | {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {USERS};"
    ),
    "delegation.token.secret.key": "a key of this test",
}
"""Everybody may do everything until the first ACLs are there, which leave it to who comes from 127.0.0.1 and has not
logged in."""

ADMINISTRATOR = [acl(kind, ALL, "*", host="127.0.0.1") for kind in (TOPIC, GROUP, TXN, TOKEN, USER, CLUSTER)]
ALLOWED = compare.allowed(Path(__file__).with_name("differences_rights.toml"))
ATTEMPTS = 3
TOGETHER = 2

numbers = itertools.count(1)


def close(port: int) -> None:
    """Removes all rights except the administrator's."""
    play = Play(("127.0.0.1", port), "", {})
    play.run([ask("CreateAcls", v=3, Creations=ADMINISTRATOR)])
    assert {each["ErrorCode"] for each in play.transcript[0][2]["Results"]} == {0}, play.transcript


def listeners(plaintext: int, sasl: int) -> dict[str, str]:
    both = f"PLAINTEXT://127.0.0.1:{plaintext},SASL://127.0.0.1:{sasl}"
    return {"listeners": both, "advertised.listeners": both}


@pytest.fixture(scope="module")
def pair(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """Yields Apache Kafka and Barnabas with an authorizer: each broker, and the port of logins."""
    ports = [free_port() for _ in range(3)]
    ours = BarnabasProcess(tmp_path_factory.mktemp("guarded"), GUARDED | listeners(*ports[:2]))
    ours.port = ports[0]
    theirs = ApacheKafka(tmp_path_factory.mktemp("apache-guarded"), GUARDED)
    controller = theirs.properties["listeners"].partition(",")[2]
    theirs.properties |= listeners(theirs.port, ports[2])
    theirs.properties["listeners"] += f",{controller}"
    with theirs:
        ours.start()
        try:
            for broker in (theirs, ours):
                wake_coordinators(broker.port)
                close(broker.port)
            yield (theirs, ports[2]), (ours, ports[1])
            assert ours.complaints() == []
        finally:
            ours.stop()


def transcript(
    broker: tuple[Any, int], steps: Any, number: int, versions: dict[str, int]
) -> list[tuple[str, str, Any]]:
    port, prefix, host = broker[0].port, f"r{number}-", f"127.1.{number // 250}.{number % 250 + 2}"
    names = {name: f"{name}{number % RUNS}" for name in ("user", "other")}
    logins = {name: Login(broker[1], user, "secret") for name, user in names.items()}
    play = Play(("127.0.0.1", port), prefix, versions, {"stranger": host, **logins})
    principals = {"$principal": f"User:{names['user']}", "$other principal": f"User:{names['other']}"}
    play.saved |= {"$host": host, "$user": names["user"], "$other": names["other"], **principals}
    play.run(steps)
    normal = compare.Normal(port, time.time_ns() // 1_000_000, prefix, play.saved)
    return [(label, api, normal.answer(answer, api=api)) for label, api, answer in play.transcript]


def problems(brokers: tuple[Any, Any], row: Scenario, version: int) -> list[str]:
    number, versions = next(numbers), HELPERS | {row.api: version}
    with ThreadPoolExecutor(2) as pool:
        apache, ours = pool.map(lambda broker: transcript(broker, row.steps, number, versions), brokers)
    return compare.verdict(compare.compare(apache, ours), ALLOWED, row.name, version)


@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row.name)
def test_refusals_are_the_same(pair: tuple[Any, Any], row: Scenario) -> None:
    versions = sorted({row.versions[0], row.versions[-1]})
    found = {}
    for version in versions:
        for _ in range(ATTEMPTS):
            found[version] = problems(pair, row, version)
            if not found[version]:
                break
    if any(found.values()):
        pytest.fail("\n".join(itertools.chain(*found.values())), pytrace=False)


def test_the_list_names_scenarios_that_there_are() -> None:
    known = {row.name for row in SCENARIOS}
    assert {entry.scenario for entry in ALLOWED} <= known
