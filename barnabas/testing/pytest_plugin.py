"""The pytest plugin: ``kafka_broker``, a broker that is empty at the start of each test, and ``kafka_cluster``.

Knows nothing of the broker until a test uses it. pytest loads the plugin in every run if Barnabas is installed, so it
imports nothing but pytest.
"""

import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.testing import Broker, Cluster


class PlainFinder(MetaPathFinder):
    """Finds Barnabas's modules before pytest's own finder does.

    pytest rewrites the assertions of all modules of a distribution that has a plugin. The broker's are no assertions of
    tests, and its modules would take twice as long to import.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, path, target) if fullname.startswith("barnabas.") else None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Has the broker's modules imported as they are, those that a conftest.py imports, too."""
    finder = PlainFinder()
    sys.meta_path.insert(0, finder)
    early_config.add_cleanup(lambda: sys.meta_path.remove(finder))


@pytest.fixture(scope="session")
def kafka_broker_config() -> dict[str, object]:
    """Kafka configs of the broker. Override it in your conftest.py, with session scope."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker_features() -> dict[str, int]:
    """Levels of features of the cluster; others are at their newest level. Override it as ``kafka_broker_config``."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker_security() -> dict[str, Any]:
    """``tls``, ``users`` and ``acls`` of the broker. Override it as ``kafka_broker_config``."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker_session(
    kafka_broker_config: dict[str, object],
    kafka_broker_features: dict[str, int],
    kafka_broker_security: dict[str, Any],
) -> "Iterator[Broker]":
    """One broker for the whole session, which is never emptied: for tests that clean up or use distinct names."""
    from barnabas.testing import Broker

    with Broker(kafka_broker_config, features=kafka_broker_features, **kafka_broker_security) as broker:
        yield broker


@pytest.fixture
def kafka_broker(kafka_broker_session: "Broker") -> "Broker":
    """A running broker without topics and groups; its address is ``kafka_broker.bootstrap_servers``."""
    kafka_broker_session.reset()
    return kafka_broker_session


@pytest.fixture(scope="session")
def kafka_cluster_config() -> dict[str, object]:
    """Kafka configs of all nodes of the cluster. Override it as ``kafka_broker_config``."""
    return {}


@pytest.fixture
def kafka_cluster(kafka_cluster_config: dict[str, object]) -> "Iterator[Cluster]":
    """Three brokers and a controller, another cluster for each test: it starts in a tenth of a second."""
    from barnabas.testing import Cluster

    with Cluster(3, kafka_cluster_config) as cluster:
        yield cluster


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Adds to a failed test which faults the broker has had in it. Others have fixtures of that name, too."""
    made = yield
    report = made.get_result()
    if report.failed:
        for name in ("kafka_broker", "kafka_cluster"):
            fault_report = getattr(getattr(item, "funcargs", {}).get(name), "fault_report", None)
            if fault_report is not None and (faults := fault_report()):
                report.sections.append((f"Faults of {name}", faults))
