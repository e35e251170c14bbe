"""``barnabas top`` as a process, against brokers with metrics."""

import io
import json
import threading

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console

from barnabas.cli import top as command
from barnabas.cli.commands import barnabas
from barnabas.cli.top_figures import Between, summed
from barnabas.testing import Broker

HELP = "# TYPE {0} counter\n"


@pytest.fixture(scope="module")
def broker():
    with Broker(barnabas_metrics_listener="127.0.0.1:0") as broker:
        yield broker


def run(broker, *arguments):
    result = CliRunner().invoke(barnabas, ["top", "--url", broker.metrics_url, *arguments])
    return result.exit_code, result.output


@pytest.fixture
def busy(broker):
    """Produces during the test; a group has only read the first record."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop", "linger.ms": 0})
    producer.produce("orders", b"v" * 100, partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()
    ended = threading.Event()

    def work():
        while not ended.is_set():
            producer.produce("orders", b"v" * 100, partition=0)
            producer.flush(30)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    ended.set()
    thread.join()


def test_once_as_json(broker, busy):
    code, output = run(broker, "--once", "--json", "--interval", "1")
    assert code == 0, output
    figures = json.loads(output)
    assert figures["seconds"] >= 1
    assert figures["brokers"]["messages_in"] > 0
    assert figures["brokers"]["memory_bytes"] > 0
    (topic,) = [row for row in figures["topics"] if row["topic"] == "orders"]
    assert topic["bytes_in"] > 100 * topic["messages_in"] > 0
    (client,) = [row for row in figures["clients"] if row["client_id"] == "shop"]
    assert client["requests"] > 0
    (group,) = [row for row in figures["groups"] if row["group"] == "billing"]
    assert group["lag"] >= group["grows"] > 0
    (request,) = [row for row in figures["requests"] if row["request"] == "Produce"]
    assert request["requests"] > 0
    assert request["failed"] == 0
    assert request["p99_ms"] > 0
    assert request["handler_ms"] > 0


def test_once_for_people(broker, busy):
    code, output = run(broker, "--once", "--interval", "0.5")
    assert code == 0, output
    for part in ("records/s", "connections", "Topics, a second", "orders", "shop", "billing", "Produce", "P99 MS"):
        assert part in output, output


def test_the_live_view(broker, busy):
    before = command.scrape([broker.metrics_url])
    figures = Between(before, command.scrape([broker.metrics_url])).figures()
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(command.screen(figures, 5))
    text = console.export_text()
    assert "orders" in text
    assert "billing" in text


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense://x"])
def test_a_broker_that_does_not_answer(url):
    result = CliRunner().invoke(barnabas, ["top", "--url", url, "--once"])
    assert result.exit_code == 1
    assert "barnabas.metrics.listener" in result.output


# ------------------------------------------------------------ figures


def between(before, after, seconds=2):
    return Between(summed(0, before), summed(seconds, after)).figures()


def messages(**by_topic):
    name = "kafka_server_brokertopicmetrics_messagesin"
    lines = [f'{name}_total{{topic="{topic}"}} {value}' for topic, value in by_topic.items()]
    return HELP.format(name) + "\n".join(lines) + "\n"


def test_rates_are_summed_over_brokers_and_idle_topics_left_out():
    figures = between([messages(a=10, b=5), messages(a=0)], [messages(a=14, b=5), messages(a=6)])
    assert figures["topics"] == [{"topic": "a", "messages_in": 5.0, "bytes_in": 0.0, "bytes_out": 0.0}]


def test_a_counter_that_began_anew():
    (row,) = between([messages(a=100)], [messages(a=8)])["topics"]
    assert row["messages_in"] == 4.0


def test_the_slowest_requests_come_first():
    def times(**fast):
        lines = [HELP.format("kafka_network_requestmetrics_requests")]
        lines += [
            f'kafka_network_requestmetrics_requests_total{{request="{name}",version="1"}} {count}\n'
            for name, (count, _) in fast.items()
        ]
        lines.append("# TYPE barnabas_request_seconds histogram\n")
        for name, (count, within) in fast.items():
            for bound, value in (("0.1", within), ("1.6", count), ("+Inf", count)):
                lines.append(f'barnabas_request_seconds_bucket{{request="{name}",le="{bound}"}} {value}\n')
        return "".join(lines)

    figures = between([times(Fetch=(0, 0), Produce=(0, 0))], [times(Fetch=(10, 0), Produce=(100, 100))])
    assert [(row["request"], row["p99_ms"]) for row in figures["requests"]] == [("Fetch", 1600.0), ("Produce", 100.0)]


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 30, "5.0 GiB")])
def test_sizes_have_units(count, text):
    assert command.size(count) == text
