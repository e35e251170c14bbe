"""A broker with topics and records, and its console."""

import re

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from starlette.testclient import TestClient

from barnabas.cli.client import Cluster
from barnabas.console.application import Console
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker(barnabas_schema_registry_listener="127.0.0.1:0") as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics({
            "orders": {"num_partitions": 3, "replication_factor": 1},
            "doomed": {"num_partitions": 2, "replication_factor": 1},
        })  # fmt: skip
        admin.close()
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for number in range(300):
            value = b'{"number":%d,"customer":{"name":"%s"}}' % (number, b"Ada" if number % 100 == 7 else b"Bob")
            producer.send(
                "orders", value, b"k%d" % number, [("source", b"web")], partition=number % 3, timestamp_ms=1000 + number
            )
        producer.close()
        yield broker


class Browser(TestClient):
    """A client that sends the token of forms, as the pages do."""

    def submit(self, page: str, address: str, **fields: str):
        token = re.search(r'name="csrf" value="(\w+)"', self.get(page).text)[1]
        return self.post(address, data={"csrf": token, **fields}, follow_redirects=False)


@pytest.fixture
def pages(broker):
    console = Console(Cluster(broker.bootstrap_servers, {}), registry=broker.schema_registry_url)
    return Browser(console.application())
