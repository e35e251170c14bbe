"""The shop and its topics, once for all tests: each begins with a copy of them."""

import json
import sys
from pathlib import Path

import pytest
from kafka.cluster import ClusterMetadata

sys.path.insert(0, str(Path(__file__).parents[1]))

from order_service import Cashier, Shop

# A new client of kafka-python waits 100 ms before it asks for its first topic, whatever its own retry_backoff_ms says.
ClusterMetadata.DEFAULT_CONFIG["retry_backoff_ms"] = 10


@pytest.fixture(scope="session")
def kafka_broker_config():
    """One partition for each internal topic: fifty, as Kafka has by default, take longer to make for each test."""
    return {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


@pytest.fixture(scope="session")
def opened(kafka_broker_session):
    """The state of a broker that has the topics."""
    kafka_broker_session.reset()
    kafka_broker_session.create_topic("orders", partitions=3)
    kafka_broker_session.create_topic("invoices", configs={"retention.ms": 10 * 24 * 3_600_000})
    kafka_broker_session.create_topic("orders.failed")
    return kafka_broker_session.save()


@pytest.fixture
def broker(kafka_broker, opened):
    kafka_broker.restore(opened)
    return kafka_broker


@pytest.fixture
def shop(broker):
    shop = Shop(broker.bootstrap_servers, retry_backoff_ms=10, reconnect_backoff_ms=10)
    yield shop
    shop.close()


@pytest.fixture
def cashier(broker):
    cashier = Cashier(broker.bootstrap_servers, reconnect_backoff_ms=10)
    yield cashier
    cashier.close()


@pytest.fixture
def invoices(broker):
    """The invoices that count: those of transactions that were committed."""
    return lambda: [json.loads(record.value) for record in broker.records("invoices", committed=True)]


@pytest.fixture
def failed(broker):
    return lambda: [record.value for record in broker.records("orders.failed", committed=True)]


@pytest.fixture
def seed(broker):
    """Puts orders there, without a shop."""
    return lambda *values: broker.seed([{"topic": "orders", "partition": 0, "value": value} for value in values])
