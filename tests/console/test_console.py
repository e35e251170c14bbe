"""The console's pages, against a broker."""

import re

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from starlette.testclient import TestClient

from barnabas.cli.client import Cluster
from barnabas.console.application import Console
from barnabas.console.command import console
from barnabas.console.decoding import decoded
from barnabas.console.reading import Page
from barnabas.testing import Broker

HTML = "<script>alert('here')</script>"


@pytest.fixture(scope="module")
def pages():
    with Broker() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics(
            {
                "orders": {"num_partitions": 120, "replication_factor": 1, "configs": {"retention.ms": "60000"}},
                "empty": {"num_partitions": 1, "replication_factor": 1},
            }
        )
        admin.close()
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for number in range(60):
            producer.send("orders", b'{"number":%d}' % number, key=b"a", partition=0)
        producer.send("orders", HTML.encode(), key=b"\xff\x00", headers=[("h", HTML.encode())], partition=1)
        producer.close()
        yield TestClient(Console(Cluster(broker.bootstrap_servers, {})).application())


def test_the_overview_names_the_cluster_and_its_brokers(pages):
    answer = pages.get("/")
    assert answer.status_code == 200
    assert "2 topics" in answer.text and "<td>127.0.0.1:" in answer.text.replace("localhost", "127.0.0.1")


def test_topics_are_searched(pages):
    assert "/topics/orders" in pages.get("/topics").text
    found = pages.get("/topics?search=ORD").text
    assert re.search(r"<td>120</td><td>1</td><td>[\d.]+ KiB</td><td>0</td>", found), "its size is shown"
    assert "/topics/orders" in found and "/topics/empty" not in found
    assert "Show all topics" in pages.get("/topics?search=none").text


def test_a_topic_has_pages_of_partitions_and_its_configs(pages):
    first, second = pages.get("/topics/orders").text, pages.get("/topics/orders?page=2").text
    assert "partition=99" in first and "partition=100" not in first
    assert "partition=100" in second and "partition=99" not in second
    assert "<td>retention.ms</td><td>60000</td><td>this topic</td>" in first


def test_records_are_browsed_by_offset(pages):
    last = pages.get("/topics/orders/records").text
    assert ">10</a>" in last and ">59</a>" in last and ">9</a>" not in last
    assert "offset=0" in last and "Later" not in last
    first = pages.get("/topics/orders/records?offset=0").text
    assert ">0</a>" in first and ">49</a>" in first and ">50</a>" not in first
    assert "offset=50" in first and "Earlier" not in first


def test_html_in_records_is_escaped_and_no_script_may_run(pages):
    answer = pages.get("/topics/orders/records?partition=1")
    assert "<script>" not in answer.text and answer.text.count("&lt;script&gt;") == 2
    assert "ff 00" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    assert "<script>" not in pages.get("/topics", params={"search": HTML}).text


def test_what_is_empty_or_missing_says_what_to_do(pages):
    assert "barnabas produce" in pages.get("/topics/empty/records").text
    assert pages.get("/topics/none/records").status_code == 404
    assert pages.get("/topics/none").status_code == 404, "reading creates no topic"
    assert pages.get("/topics/orders/records?partition=200").status_code == 404
    too_many = pages.get("/topics/orders/records?partition=all")
    assert too_many.status_code == 400 and "120 partitions: choose one" in too_many.text
    assert "--admin-api" in pages.get("/faults").text and "Choose one" not in pages.get("/faults").text
    wrong = pages.get("/topics/orders/records?offset=x")
    assert wrong.status_code == 400 and "must be a number" in wrong.text


def test_bytes_are_shown_as_json_text_or_hex():
    assert [decoded(data)["kind"] for data in (None, b"", b"{}", b"{", b"a", b"\xff")] == [
        "null", "text", "json", "text", "text", "hex",
    ]  # fmt: skip
    assert decoded(b"a" * 3000)["is_cut"] and decoded(b"\xff" * 3000)["is_cut"]


def test_a_page_beyond_the_last_is_the_last():
    assert Page.of([1, 2, 3], 9, 2) == Page([3], 2, 2, 3)
    assert Page.of([], 1, 2) == Page([], 1, 1, 0)


def test_the_console_is_for_this_machine_alone():
    answer = CliRunner().invoke(console, ["--listener", "0.0.0.0:0"])
    assert answer.exit_code == 1 and "an address of this machine" in answer.output
