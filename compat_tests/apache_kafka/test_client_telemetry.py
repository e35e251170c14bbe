"""The Java producer pushes its metrics to a broker, as configured by kafka-client-metrics.sh (KIP-714)."""

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker

from .test_console_tools import TOOLS, Tools

COUNT = 3000


@pytest.fixture
def broker(kafka_jars: Path) -> Iterator[Broker]:
    with Broker(barnabas_metrics_listener="127.0.0.1:0") as broker:
        yield broker


@pytest.fixture
def tools(broker: Broker) -> Iterator[Tools]:
    tools = Tools(broker.bootstrap_servers)
    yield tools
    assert tools.process.stdin is not None
    tools.process.stdin.close()
    tools.process.wait()


@pytest.mark.long
def test_a_java_producer_pushes_what_it_has_sent(broker: Broker, tools: Tools) -> None:
    command = f"{TOOLS}.ClientMetricsCommand"
    tools(
        command, "--alter", "--name", "shops", "--metrics", "org.apache.kafka.producer.",
        "--interval", "500", "--match", "client_id=shop-.*,client_software_name=apache-kafka-java",
    )  # fmt: skip
    assert "interval.ms=500" in tools(command, "--describe", "--name", "shops")
    for client_id in ("shop-1", "clerk-1"):
        _, sent, complaints = tools.run(
            f"{TOOLS}.ProducerPerformance",
            *("--topic", "orders", "--num-records", str(COUNT), "--record-size", "100", "--throughput", "1000"),
            *("--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", f"client.id={client_id}"),
        )
        assert f"{COUNT} records sent" in sent, complaints
    with urllib.request.urlopen(broker.metrics_url + "/metrics", timeout=30) as response:
        shown = response.read().decode()
    found = re.findall(r'^kafka_client_producer_record_send_total\{client_id="(.*?)",.*\} (.*)$', shown, re.MULTILINE)
    ((client_id, pushed),) = found
    assert client_id == "shop-1"
    assert 0 < float(pushed) <= COUNT  # a producer may close without a last push
    assert 'client_software_name="apache-kafka-java"' in shown
