"""The how-to page on replacing Apache Kafka node by node, run step by step, under load."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from compat_tests.test_cluster_documents import Machines
from compat_tests.test_documents import ROOT

from .load import Load
from .mixed import APACHE, Mixed

pytestmark = pytest.mark.xdist_group("replacing")  # it starts its own nodes

REPLACING = ROOT / "docs/how-to/replace-apache-kafka-node-by-node.md"


class Replaced(Machines):
    """A cluster of Apache Kafka, of one controller and one broker, whose nodes are replaced as on the page."""

    page = REPLACING

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.apache = Mixed(home / "apache", APACHE, [APACHE])
        for node in (self.apache.controller, *self.apache.brokers.values()):
            node.properties |= {"min.insync.replicas": "1", "default.replication.factor": "1"}
            node.properties |= {
                f"{topic}.replication.factor": "1"
                for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            }
            node.properties["transaction.state.log.min.isr"] = "1"

    def place(self, text: str) -> str:
        """Replaces the page's names by addresses: ``kafka-1`` is Apache Kafka's, ``kafka-2`` is Barnabas's."""
        old = self.apache.brokers[1].address
        text = text.replace("100@kafka-1:9093", self.apache.controller.properties["controller.quorum.voters"])
        return text.replace("kafka-1:9092", old).replace("kafka-2:9092", self.address(2))


@pytest.fixture
def replaced(kafka_jars: Path, tmp_path: Path) -> Iterator[Replaced]:
    machines = Replaced(tmp_path)
    with machines.apache:
        yield machines
        machines.end()


def test_apache_kafka_is_replaced(replaced: Replaced, tmp_path: Path) -> None:
    text = replaced.place(REPLACING.read_text())
    old = replaced.apache.brokers[1]
    where = ["--bootstrap-server", old.address]
    replaced.run("topics", *where, "--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "1")
    commands = re.findall(r"^\$ barnabas (.*)$", text, re.MULTILINE)
    printed = re.findall(r"^Cluster ID: (.*)$", text, re.MULTILINE)
    load = Load(f"{old.address},{replaced.address(2)}", "orders")
    load.goes_on()
    consumer = Consumer({"bootstrap.servers": old.address, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.poll(30) is not None
    consumer.close()
    properties = tmp_path / "new.properties"
    properties.write_text(
        replaced.place(replaced.blocks["new.properties"]).replace("/var/lib/barnabas", str(tmp_path / "new"))
    )
    (tmp_path / "topics.json").write_text(re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0])
    for command in commands:
        words, _, _ = command.partition(" | ")
        for name in ("new.properties", "topics.json", "moves.json"):
            words = words.replace(name, str(tmp_path / name))
        if words.startswith("serve"):
            replaced.serve(2, properties)
            replaced.wait_for(2)
            continue
        if "unregister" in words:
            old.stop()
        said = replaced.run(*words.split())
        if words.startswith("cluster cluster-id"):
            assert printed == [said.split()[-1]]
        if "--generate" in words:
            (tmp_path / "moves.json").write_text(said.splitlines()[-1])
    load.goes_on()
    load.stop()
    assert load.failures == []
    found = AdminClient({"bootstrap.servers": replaced.address(2)}).list_topics(timeout=10)
    assert list(found.brokers) == [2]
    assert {each.leader for each in found.topics["orders"].partitions.values()} == {2}
    assert old.errors() == []
