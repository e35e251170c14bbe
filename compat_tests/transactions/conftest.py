"""Brokers of both generations of transactions."""

import os
from collections.abc import Iterator

import pytest

from compat_tests.conftest import a_broker, started
from compat_tests.running import Running


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yields a broker with the transactions of before KIP-890: ``transaction.version`` 1."""
    if os.environ.get("BARNABAS_COMPAT_BOOTSTRAP"):
        pytest.skip("this test wants a broker with another transaction.version than the one given")
    with started(a_broker(tmp_path_factory.mktemp("older"), {}, {"transaction.version": 1})) as broker:
        yield broker


@pytest.fixture(params=[2, pytest.param(1, marks=pytest.mark.xdist_group("transaction.version 1"))])
def generation(request: pytest.FixtureRequest) -> int:
    """Returns the level of ``transaction.version``."""
    level: int = request.param
    return level


@pytest.fixture
def of_generation(request: pytest.FixtureRequest, generation: int) -> str:
    """Returns the address of a broker with this level."""
    broker: Running = request.getfixturevalue("barnabas" if generation == 2 else "older")
    return broker.bootstrap
