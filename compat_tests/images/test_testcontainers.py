"""Our image, started as each Testcontainers library starts its own image."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from .container import Container
from .libraries import LIBRARIES, Library

KAFKAS_LOG_DIR = "/tmp/kafka-logs"


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    made = Container(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.stop()


def filled(text: str, ports: dict[str, str]) -> str:
    for name, value in {**ports, "host": "localhost"}.items():
        text = text.replace("{" + name + "}", value)
    return text


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_container_of(name: str, container: Container, ports: dict[str, str]) -> None:
    library: Library = LIBRARIES[name]
    variables = {key: filled(value, ports) for key, value in library.variables.items()}
    if "/etc/kafka/docker" in library.text:
        variables["KAFKA_LOG_DIRS"] = KAFKAS_LOG_DIR  # the default, moved to the scratch directory
    container.start(library.command, variables)
    container.put(library.script, filled(library.text, ports), library.mode)
    container.wait_for(library.waits_for or "started")

    bootstrap = f"localhost:{ports['port']}"
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    described = admin.describe_cluster()
    assert [(each["host"], str(each["port"])) for each in described["brokers"]] == [("localhost", ports["port"])]
    if library.cluster is not None:
        assert described["cluster_id"] == library.cluster
    admin.close()
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send("orders", b"one").get(10)
    with KafkaConsumer(
        "orders", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest", consumer_timeout_ms=10_000
    ) as consumer:
        assert next(iter(consumer)).value == b"one"
    assert container.stop() in (0, -15)
    assert " ERROR " not in container.logged()
    assert "Traceback" not in container.logged()
