"""The Dockerfile and the compose file, without a container engine: their paths exist and their commands work."""

import json
import shlex
from pathlib import Path

import pytest
import yaml
from kafka import KafkaConsumer, KafkaProducer

from .container import DOCKER, Container

ROOT = DOCKER.parent
STARTS = ("CMD", "ENTRYPOINT")


def instructions() -> list[tuple[str, str]]:
    """Returns the instructions of the Dockerfile, with their arguments."""
    text = "\n".join(line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.startswith("#"))
    lines = text.replace("\\\n", " ").splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line)]


def commands() -> list[list[str]]:
    """Returns the commands of the stages, in order: the last is the image's."""
    return [json.loads(rest) for name, rest in instructions() if name in STARTS]


@pytest.fixture
def container(tmp_path: Path, request: pytest.FixtureRequest) -> Container:
    made = Container(tmp_path)

    def end() -> None:
        if made.process is not None and made.process.poll() is None:
            made.stop()

    request.addfinalizer(end)
    return made


def test_what_is_copied_is_in_the_context() -> None:
    let_in = {line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = [shlex.split(rest) for name, rest in instructions() if name == "COPY"]
    sources = {each for words in copied if not words[0].startswith("--from=") for each in words[:-1]}
    assert sources == let_in
    assert all((ROOT / each).exists() for each in sources)


def test_what_is_started_is_in_the_image(container: Container) -> None:
    started = [words[0] for words in commands()]
    started += [json.loads(rest.partition(" CMD ")[2])[0] for name, rest in instructions() if name == "HEALTHCHECK"]
    assert len(started) == 5
    for path in started:
        assert (container.root / path.lstrip("/")).stat().st_mode & 0o111, path


def test_the_compose_file(container: Container, ports: dict[str, str]) -> None:
    text = (DOCKER / "compose.yaml").read_text()
    for inside, name in (("9092", "port"), ("19092", "broker"), ("9093", "controller")):
        text = text.replace(f":{inside}", f":{ports[name]}")
    (service,) = yaml.safe_load(text.replace("//broker:", "//localhost:"))["services"].values()
    assert (ROOT / service["build"]["dockerfile"]).exists()

    container.start(commands()[-1], service["environment"])
    container.wait_for("Kafka Server started")
    health = container.run("kafka-health")
    assert (health.returncode, health.stderr) == (0, "")

    inside, outside = f"localhost:{ports['broker']}", f"localhost:{ports['port']}"
    with KafkaProducer(bootstrap_servers=inside) as producer:
        producer.send("orders", b"tea").get(10)
    with KafkaConsumer("orders", bootstrap_servers=outside, group_id="g", auto_offset_reset="earliest") as consumer:
        assert next(iter(consumer)).value == b"tea"
    listed = container.run("/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", outside, "--list")
    assert "orders" in listed.stdout.splitlines(), listed.stderr
    assert container.stop() in (0, -15)
    assert container.run("kafka-health").returncode != 0


def test_health_before_there_is_a_node(container: Container) -> None:
    container.environment = {"PATH": f"{container.root}/usr/bin:/usr/bin:/bin"}
    ran = container.run("kafka-health")
    assert (ran.returncode, ran.stdout) == (1, "there is no properties file yet\n")
