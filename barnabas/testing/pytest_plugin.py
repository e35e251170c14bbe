"""The pytest plugin: ``kafka_broker``, a broker that is empty at the start of each test.

Knows nothing of the broker until a test asks for one: it is loaded in every test run of whoever has Barnabas
installed, so it imports nothing but pytest.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing import Broker


@pytest.fixture(scope="session")
def kafka_broker_config() -> dict[str, object]:
    """Kafka configs of the broker that the tests get. Override it in your conftest.py, with session scope."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker_features() -> dict[str, int]:
    """Levels of features that its cluster is to have where they are not the newest. Override it as the configs."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker_session(
    kafka_broker_config: dict[str, object], kafka_broker_features: dict[str, int]
) -> "Iterator[Broker]":
    """One broker for the whole session, never emptied: for who cleans up, or names things apart."""
    from barnabas.testing import Broker

    with Broker(kafka_broker_config, features=kafka_broker_features) as broker:
        yield broker


@pytest.fixture
def kafka_broker(kafka_broker_session: "Broker") -> "Broker":
    """A running broker without topics or groups; its address is ``kafka_broker.bootstrap_servers``."""
    kafka_broker_session.reset()
    return kafka_broker_session
