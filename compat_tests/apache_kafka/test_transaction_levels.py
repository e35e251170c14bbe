"""The scenarios of transactions once more, by brokers whose finalized transaction.version is 1.

Each API in the versions where clients of the first generation of transactions (KIP-98) part from those of the second
(KIP-890). What the brokers keep of it on the disk is in ``test_transaction_files.py``.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .conftest import Pair
from .scenarios import transactional, transactional_offsets, transactions
from .steps import Scenario
from .test_differential import ATTEMPTS, TOGETHER, problems

ROWS = [
    row
    for module in (transactions, transactional, transactional_offsets)
    for row in module.SCENARIOS
    if row.api not in ("FindCoordinator", "ListTransactions", "DescribeTransactions")  # the same in all of them
]

TELLING = {
    "AddPartitionsToTxn": (3, 5),
    "EndTxn": (4, 5),
    "InitProducerId": (3, 5),
    "Produce": (11, 12),
    "TxnOffsetCommit": (3, 4, 5),
}
"""The versions that are asked for; the newest of what is not here."""


def chosen(row: Scenario) -> list[int]:
    return [version for version in row.versions if version in TELLING.get(row.api, row.versions[-1:])]


@pytest.mark.parametrize("api", sorted({row.api for row in ROWS}))
def test_answers_are_the_same(first_generation: Pair, api: str) -> None:
    asked = [(row, version) for row in ROWS if row.api == api for version in chosen(row)]
    with ThreadPoolExecutor(TOGETHER) as pool:
        found = list(pool.map(lambda one: problems(first_generation, *one), asked))
    told = []
    for (row, version), wrong in zip(asked, found, strict=True):
        for _ in range(ATTEMPTS - 1):
            wrong = wrong and problems(first_generation, row, version)
        told += [f"{row.name}, {line}" for line in wrong]
    if told:
        pytest.fail("\n".join(told), pytrace=False)
