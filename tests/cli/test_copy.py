"""``barnabas copy``."""

import json

import pytest

from barnabas.cli import main
from barnabas.testing import Broker


@pytest.fixture
def orders(broker):
    broker.create_topic("orders", partitions=2)
    broker.seed(
        [
            {"topic": "orders", "partition": n % 2, "key": f"k{n}", "value": f"v{n}", "timestamp": 1000 + n,
             "headers": [{"name": "n", "value": str(n)}]}
            for n in range(10)
        ]
    )  # fmt: skip
    return broker


def copied_records(broker):
    return [
        (record.partition, record.key, record.value, record.timestamp, record.headers)
        for record in broker.records("orders")
    ]


def test_the_last_records_come_in_a_file_and_seed_another_broker(orders, tmp_path, capsys):
    file = tmp_path / "orders.jsonl"
    source = orders.bootstrap_servers
    assert main(["copy", "--from", source, "--topics", "orders", "--last", "3", "--output", str(file)]) == 0
    assert capsys.readouterr().err == "Copied 6 records\n"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["value"] for line in lines] == ["v4", "v6", "v8", "v5", "v7", "v9"]
    with Broker() as other:
        other.create_topic("orders", partitions=2)
        other.seed(file)
        assert copied_records(other) == [each for each in copied_records(orders) if each[2] >= b"v4"]


def test_from_one_cluster_to_another(orders, capsys):
    with Broker() as other:
        assert main(["copy", "--from", orders.bootstrap_servers, "--topics", "orders",
                     "--to", other.bootstrap_servers]) == 0  # fmt: skip
        assert copied_records(other) == copied_records(orders)
    assert capsys.readouterr().err == "Copied 10 records\n"


def test_what_is_not_there_is_one_line(orders, capsys):
    source = orders.bootstrap_servers
    assert main(["copy", "--from", source, "--topics", "orders,nope"]) == 1
    assert capsys.readouterr().err == f"Error: There is no topic nope at {source}\n"
    assert main(["copy", "--from", source, "--topics", "orders", "--to", "x:1", "--output", "f"]) == 2
