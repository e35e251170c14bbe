"""The how-to about moving to Apache Kafka and back, run step by step, with one broker at a time.

Knows the page only; replaces its port 9092 and ``/var/lib/barnabas``.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.ports import free_port
from compat_tests.running import environment
from compat_tests.test_documents import ROOT, blocks, commands

from .apache import CURRENT, await_answers, java_command

pytestmark = pytest.mark.xdist_group("hand_over")
PAGE = "docs/how-to/move-to-apache-kafka-and-back.md"
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-server-start.sh": "kafka.Kafka",
}
"""The classes that the scripts of Apache Kafka's distribution run."""


class Reader:
    """A reader with both brokers, who stops the running one before starting the other."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port, controller = free_port(), free_port()
        self.instead = {"9092": str(self.port), "9093": str(controller), "/var/lib/barnabas": str(home / "data")}
        self.process: subprocess.Popen[bytes] | None = None
        (home / "bin").mkdir()
        for name, main in TOOLS.items():
            self.script(f"bin/{name}", " ".join(f"'{word}'" for word in java_command(CURRENT, main)))
        self.script("barnabas", f"{sys.executable} -m barnabas")  # its commands for topics and groups need the extra

    def script(self, name: str, command: str) -> None:
        path = self.home / name
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o755)

    def here(self, text: str) -> str:
        return re.sub("|".join(self.instead), lambda found: self.instead[found[0]], text)

    def type(self, command: str, printed: list[str]) -> None:
        if command.startswith(("barnabas serve", "bin/kafka-server-start.sh")):
            self.stop()
            self.start(command)
            return
        ran = self.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, complaints = (stream.decode() for stream in ran.communicate(timeout=60))
        assert ran.returncode == 0, f"{command}\n{complaints}"
        if printed != ["…"]:
            assert output.splitlines() == printed, f"{command}\n{complaints}"

    def run(self, command: str, **streams: object) -> "subprocess.Popen[bytes]":
        path = f"{self.home}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
            ["bash", "-o", "pipefail", "-c", self.here(command)],
            env={**environment(), "PATH": path, "COLUMNS": "120"},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            **streams,
        )

    def start(self, command: str) -> None:
        log = self.home / "broker.log"
        with log.open("ab") as output:
            self.process = self.run(f"exec {command}", stdout=output, stderr=output)
        await_answers(self.port, self.process, log)

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.fixture
def reader(kafka_jars: Path, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.stop()


def test_the_page(reader: Reader) -> None:
    (properties,) = re.findall(r"^```properties\n(.*?)^```$", (ROOT / PAGE).read_text(), re.MULTILINE | re.DOTALL)
    (reader.home / "server.properties").write_text(reader.here(properties))
    for _, body in blocks(PAGE):
        for command, printed in commands(body):
            reader.type(command, printed)
