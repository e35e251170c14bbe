"""A broker with short group timeouts for tests, and members of groups on it."""

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.conftest import a_broker, started
from compat_tests.running import Running

from .members import Group

QUICK = {
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "20000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.regex.refresh.interval.ms": "10000",
    "group.share.min.session.timeout.ms": "500",
    "group.share.session.timeout.ms": "20000",
    "group.share.min.heartbeat.interval.ms": "50",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.initialize.retry.interval.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Intervals: members learn of each other within a tenth of a second; a silent one is removed after twenty seconds."""


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yields a broker for the tests of this folder, each of which has its own topics and groups."""
    if os.environ.get("BARNABAS_COMPAT_BOOTSTRAP"):
        pytest.skip("this test wants a broker with quick groups, and the one given is not ours to set up")
    with started(a_broker(tmp_path_factory.mktemp("quick"), QUICK)) as broker:
        yield broker


@pytest.fixture
def quick_client(quick: Running) -> Iterator[ConfluentClient]:
    """Yields confluent-kafka, connected to that broker."""
    with contextlib.closing(ConfluentClient(quick.bootstrap)) as made:
        yield made


@pytest.fixture
def members(quick: Running, group: str) -> Iterator[Group]:
    """Yields a group without members; its members leave at the end of the test."""
    with contextlib.closing(Group(quick.bootstrap, group)) as made:
        yield made


@pytest.fixture
def own_group(own_broker: Callable[..., Running], group: str) -> Iterator[tuple[Running, Group]]:
    """Yields a broker that the test may kill, and a group on it."""
    broker = own_broker(QUICK)
    with contextlib.closing(Group(broker.bootstrap, group)) as made:
        yield broker, made
