"""One worker runs these tests, so that one JVM serves all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from compat_tests.apache_kafka.apache import JavaProgram, KafkaUnavailable

from .clients import PYTHON_CLIENTS, TOPIC, Client, Java


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("faults"))


@pytest.fixture(scope="session")
def java() -> Iterator[Java]:
    try:
        program = JavaProgram("FaultedClient.java")
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    yield Java(program)
    program.close()


@pytest.fixture(params=[*PYTHON_CLIENTS, Java], ids=lambda each: each.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Yields each of the four clients."""
    made: Client = request.getfixturevalue("java") if request.param is Java else request.param()
    return made


@pytest.fixture(scope="session")
def running() -> Iterator[Broker]:
    configs = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    with Broker(configs) as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Broker:
    running.reset()
    running.create_topic(TOPIC)
    return running
