"""The console's pages of Apache Kafka and of Barnabas: the same records, groups, batches and changes.

Knows nothing of the pages except the expected words.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer

pytest.importorskip("jinja2")
pytest.importorskip("starlette")

numbers = itertools.count(1)


class Pages(NamedTuple):
    """The console of a broker, with its own topic and group."""

    client: Any
    topic: str
    group: str

    def text(self, address: str) -> str:
        answer = self.client.get(address)
        assert answer.status_code == 200, answer.text
        return str(answer.text)


@pytest.fixture(scope="module", params=["apache_kafka", "beside"])
def pages(request: pytest.FixtureRequest) -> "Iterator[Pages]":
    from starlette.testclient import TestClient

    from barnabas.cli.client import Cluster
    from barnabas.console.application import Console

    broker, number = request.getfixturevalue(request.param), next(numbers)
    topic, group = f"console-orders-{number}", f"console-kitchen-{number}"
    client = TestClient(Console(Cluster(f"127.0.0.1:{broker.port}", {})).application())
    change(client, "/new-topic", "/topics", name=topic, partitions="2", replicas="1")
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "compression.type": "zstd"})
    for index in range(20):
        producer.produce(topic, f'{{"number":{index}}}', f"k{index}", partition=index % 2)
    producer.flush()
    consumer = Consumer({
        "bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    })  # fmt: skip
    consumer.subscribe([topic])
    while consumer.poll(0.1) is None:
        pass
    consumer.commit(asynchronous=False)
    consumer.close()
    yield Pages(client, topic, group)
    change(client, f"/topics/{topic}/delete", f"/topics/{topic}/delete", name=topic)


def change(client: Any, page: str, address: str, **fields: str) -> None:
    found = re.search(r'name="csrf" value="(\w+)"', client.get(page).text)
    assert found
    answer = client.post(address, data={"csrf": found[1], **fields}, follow_redirects=False)
    assert answer.status_code == 303, answer.text


def test_its_brokers_topics_and_configs(pages: Pages) -> None:
    assert "All partitions have a leader" in pages.text("/")
    assert pages.topic in pages.text("/topics")
    change(
        pages.client,
        f"/topics/{pages.topic}?config=retention.ms",
        f"/topics/{pages.topic}/configs",
        config="retention.ms",
        value="9000000",
    )
    assert "<td>9000000</td><td>this topic</td>" in pages.text(f"/topics/{pages.topic}")


def test_its_records_and_batches(pages: Pages) -> None:
    records = pages.client.get(f"/topics/{pages.topic}/records.json?partition=1").json()
    assert [each["key"] for each in records] == [f"k{number}" for number in range(1, 20, 2)]
    assert "zstd" in pages.text(f"/topics/{pages.topic}/log?partition=1&offset=0")
    found = pages.text(f"/topics/{pages.topic}/search?partition=all&where=json&search=$.number = 7")
    assert "1 found in 20 of 20" in found
    change(
        pages.client, f"/topics/{pages.topic}/produce", f"/topics/{pages.topic}/produce", value="more", partition="0"
    )
    assert "more" in pages.text(f"/topics/{pages.topic}/records?partition=0")


def test_its_groups_and_their_offsets(pages: Pages) -> None:
    assert pages.group in pages.text("/groups")
    path = f"/groups/{pages.group}/reset"
    assert "Nothing is changed yet" in pages.text(f"{path}?topic={pages.topic}&target=latest")
    change(
        pages.client,
        f"{path}?topic={pages.topic}&target=to_offset&value=3",
        path,
        topic=pages.topic,
        target="to_offset",
        value="3",
    )
    assert "<td>3</td>" in pages.text(f"/groups/{pages.group}")


@pytest.mark.parametrize("path", ["/transactions", "/access", "/transactions?topic={topic}&minutes=0"])
def test_what_else_it_has(pages: Pages, path: str) -> None:
    assert pages.text(path.format(topic=pages.topic))
