"""A proxy in front of a broker of these tests."""

import pytest

from barnabas.testing import Broker, Proxy


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def proxy(broker):
    broker.reset()
    with Proxy(broker.bootstrap_servers) as proxy:
        yield proxy
