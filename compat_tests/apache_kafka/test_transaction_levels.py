"""The scenarios of transactions again, on brokers with the finalized transaction.version 1, and then 0.

Each API is tested in the versions that separate clients of the first generation of transactions (KIP-98) from those of
the second (KIP-890). ``test_transaction_files.py`` compares the files.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from .conftest import Pair
from .scenarios import transactional, transactional_offsets, transactions
from .scenarios.features import SAFE, TRANSACTIONS, UPGRADE
from .steps import HELPERS, Scenario
from .test_differential import ATTEMPTS, TOGETHER, problems
from .test_features import await_levels, update_features
from .transaction_steps import OLD

TELLING = {
    "AddOffsetsToTxn": (4,),
    "AddPartitionsToTxn": (3, 5),
    "EndTxn": (4, 5),
    "InitProducerId": (3, 5),
    "Produce": (11, 12),
    "TxnOffsetCommit": (3, 4, 5),
}
"""The APIs whose responses depend on the level, and their versions."""

ROWS = [
    row
    for module in (transactions, transactional, transactional_offsets)
    for row in module.SCENARIOS
    if row.api in TELLING
]

LEVELS = (1, 0)
"""Changes a finalized level while the brokers run."""


class AtLevel(NamedTuple):
    level: int
    brokers: Pair


def put_at(level: int, brokers: Pair) -> None:
    """Sets transaction.version to the given level if it is 1 or 0."""
    for broker in brokers:
        for kind in (UPGRADE, SAFE):
            if update_features(broker.bootstrap, (TRANSACTIONS, level, kind)) == 0:
                break
        await_levels(broker.bootstrap, {TRANSACTIONS: level})


@pytest.fixture(scope="module", params=LEVELS)
def at_level(request: pytest.FixtureRequest, first_generation: Pair) -> AtLevel:
    put_at(request.param, first_generation)
    return AtLevel(request.param, first_generation)


def chosen(row: Scenario, level: int) -> list[int]:
    versions = [version for version in row.versions if version in TELLING[row.api]]
    return [version for version in versions if level or is_old(row, version)]


def is_old(row: Scenario, version: int) -> bool:
    """Returns whether a scenario has only clients of the first generation.

    At transaction.version 0 Apache Kafka fails to write the state of a client of the second generation, and answers
    CONCURRENT_TRANSACTIONS until it is restarted.
    """
    versions = HELPERS | {row.api: version}
    requests = [
        (step.api, versions[step.api] if step.version is None else step.version) for step in row.steps if step.api
    ]
    return all(version <= OLD.get(api, version) for api, version in requests)


@pytest.mark.parametrize("api", sorted(TELLING))
def test_answers_are_the_same(at_level: AtLevel, api: str) -> None:
    requests = [(row, version) for row in ROWS if row.api == api for version in chosen(row, at_level.level)]
    with ThreadPoolExecutor(TOGETHER) as pool:
        found = list(pool.map(lambda one: problems(at_level.brokers, *one), requests))
    results = []
    for (row, version), wrong in zip(requests, found, strict=True):
        for _ in range(ATTEMPTS - 1):
            wrong = wrong and problems(at_level.brokers, row, version)
        results += [f"{row.name}, {line}" for line in wrong]
    if results:
        pytest.fail("\n".join(results), pytrace=False)
