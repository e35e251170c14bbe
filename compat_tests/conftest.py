"""A broker for the compat tests, and unique names.

All tests of a process share one broker, and therefore use unique names of topics and groups; a test that kills or
configures its broker uses its own. ``BARNABAS_COMPAT_BOOTSTRAP`` names a running broker that is used as the shared one.
``BARNABAS_COMPAT_BROKER=apache`` runs every test against Apache Kafka: a test that fails there is no test of
compatibility.
"""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.adapters import CLIENTS, Client
from compat_tests.apache_kafka.apache import ApacheKafka, KafkaUnavailable
from compat_tests.running import ALONE, BarnabasProcess, Elsewhere, Running


class Apache(ApacheKafka):
    """Apache Kafka with the same four methods."""

    def __init__(self, home: Path, properties: dict[str, str], features: Mapping[str, int] | None) -> None:
        super().__init__(home, properties, features=features)
        voter = self.properties["controller.quorum.voters"].partition("@")[2]
        self.properties["controller.quorum.voters"] = f"{self.properties['node.id']}@{voter}"

    def start(self) -> "Apache":
        """Returns once it leads its partitions: after a kill it is fenced until its old session has expired."""
        super().start()
        admin, deadline = AdminClient({"bootstrap.servers": self.bootstrap}), time.monotonic() + 60
        while not admin.list_topics(timeout=30).brokers:
            assert time.monotonic() < deadline, "the broker stays fenced"
            time.sleep(0.1)
        return self

    def kill(self) -> None:
        self.stop(kill=True)

    def complaints(self) -> list[str]:
        return []


def a_broker(home: Path, overrides: dict[str, str], features: Mapping[str, int] | None = None) -> Running:
    if os.environ.get("BARNABAS_COMPAT_BROKER") == "apache":
        return Apache(home, {**ALONE, **overrides}, features)
    return BarnabasProcess(home, overrides, features)


@contextlib.contextmanager
def started(broker: Running) -> Iterator[Running]:
    """Runs a broker within the block, and checks its log at the end; skips the test if the broker cannot run."""
    try:
        broker.start()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    try:
        yield broker
    finally:
        broker.stop()
    assert not broker.complaints()


@pytest.fixture(scope="session")
def barnabas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yields the shared broker; topics are created on first use, which is Kafka's default."""
    elsewhere = os.environ.get("BARNABAS_COMPAT_BOOTSTRAP")
    if elsewhere:
        yield Elsewhere(elsewhere)
        return
    with started(a_broker(tmp_path_factory.mktemp("broker"), {})) as broker:
        yield broker


@pytest.fixture(scope="session")
def bootstrap(barnabas: Running) -> str:
    """Returns the address of the shared broker."""
    return barnabas.bootstrap


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """``own_broker({"num.partitions": "3"})`` starts a broker that the test may stop, kill and start again."""
    if os.environ.get("BARNABAS_COMPAT_BOOTSTRAP"):
        pytest.skip("this test stops its broker, and the one given is not ours to stop")
    brokers: list[Running] = []

    def start(overrides: dict[str, str] | None = None, features: Mapping[str, int] | None = None) -> Running:
        broker = a_broker(tmp_path / f"broker-{len(brokers)}", overrides or {}, features)
        brokers.append(broker)
        broker.start()
        return broker

    yield start
    for broker in brokers:
        broker.kill()
    assert not [line for broker in brokers for line in broker.complaints()]


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Client]:
    """Yields each of the clients, connected to the shared broker; closes all that the test opened."""
    with contextlib.closing(CLIENTS[request.param](bootstrap)) as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Returns a unique name for a topic or a group."""
    plain = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")
    return f"{plain[:80]}-{secrets.token_hex(4)}"


@pytest.fixture
def topic(name: str) -> str:
    return name


@pytest.fixture
def group(name: str) -> str:
    return f"{name}-group"
