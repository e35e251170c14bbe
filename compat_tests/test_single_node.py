"""A broker with an address and a directory, and no other configs: groups and transactions work.

Its internal topics have one replica where nobody sets another number. Apache Kafka would want three brokers, so these
tests are about Barnabas alone.
"""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from compat_tests.running import BarnabasProcess

FACTOR = "offsets.topic.replication.factor"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., BarnabasProcess]]:
    """Starts ``barnabas serve`` with ``listeners``, ``log.dirs`` and these overrides only."""
    with contextlib.ExitStack() as stack:

        def start(**overrides: str) -> BarnabasProcess:
            broker = BarnabasProcess(tmp_path / "broker")
            broker.overrides = {name.replace("_", "."): value for name, value in overrides.items()}
            stack.callback(broker.kill)
            return broker.start()

        yield start


def lines_with(broker: BarnabasProcess, pattern: str) -> list[str]:
    return [line for line in broker.output.read_text().splitlines() if re.search(pattern, line)]


def config_of(broker: BarnabasProcess, name: str) -> tuple[str, str]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        described = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")
    found = described["broker"]["1"][name]
    return found["value"], found["config_source"]


def test_a_transactional_producer_and_a_consumer_group(serve: Callable[..., BarnabasProcess]) -> None:
    broker = serve()
    source, group = TopicPartition("orders", 0), "billing"
    with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="shop")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"one")
        producer.send("orders", b"two")
        producer.commit_transaction()
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "consumer_timeout_ms": 30_000,
    }
    with contextlib.closing(KafkaConsumer("orders", **settings)) as consumer:
        found = [record.value for record in itertools.islice(consumer, 2)]
        consumer.commit()
        assert consumer.committed(source) == 2
    assert found == [b"one", b"two"]
    broker.stop()

    broker.start()
    with contextlib.closing(KafkaConsumer(**settings)) as consumer:
        assert consumer.committed(source) == 2
    assert not broker.complaints()


def test_its_defaults_are_logged_once_and_described(serve: Callable[..., BarnabasProcess]) -> None:
    broker = serve()
    (line,) = lines_with(broker, "one node")
    assert " INFO " in line
    for name in (FACTOR, "transaction.state.log.min.isr", "share.coordinator.state.topic.replication.factor"):
        assert name in line
        assert config_of(broker, name) == ("1", "DEFAULT_CONFIG")


def test_a_factor_that_is_set_is_refused_and_logged_once_a_minute(serve: Callable[..., BarnabasProcess]) -> None:
    broker = serve(offsets_topic_replication_factor="3")
    assert config_of(broker, FACTOR) == ("3", "STATIC_BROKER_CONFIG")
    settings = {"bootstrap_servers": broker.bootstrap, "group_id": "billing", "retry_backoff_ms": 100}
    with contextlib.closing(KafkaConsumer(**settings)) as consumer:
        for _ in range(2):
            with pytest.raises(KafkaError):
                consumer.committed(TopicPartition("orders", 0), timeout_ms=1000)
    warnings = lines_with(broker, "Cannot create __consumer_offsets")
    assert len(warnings) == 1, warnings
    assert " WARNING " in warnings[0]
