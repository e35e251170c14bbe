"""The how-to page of a cluster on three machines, done on three addresses of this one."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Producer

from compat_tests.apache_kafka.apache import free_port
from compat_tests.running import environment
from compat_tests.test_documents import ROOT

PAGE = ROOT / "docs/how-to/cluster-on-three-machines.md"
PROPERTIES = re.compile(r"^```properties\n# (?P<name>.*?)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
BARNABAS = [sys.executable, "-m", "barnabas"]


class Machines:
    """Three directories, each with the files of one machine; ``kafka-2`` is 127.0.0.2."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ports = {(node, port): free_port() for node in (1, 2, 3) for port in (9092, 9093)}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.blocks = {found["name"]: found["body"] for found in PROPERTIES.finditer(PAGE.read_text())}
        self.blocks["kafka-3.properties"] = re.sub(r"node.id=2|kafka-2", lambda found: found[0][:-1] + "3", self.second)
        authority = trustme.CA()
        for node in (1, 2, 3):
            folder = home / f"kafka-{node}"
            folder.mkdir()
            authority.cert_pem.write_to_path(str(folder / "authority.pem"))
            authority.issue_cert(f"127.0.0.{node}").private_key_and_cert_chain_pem.write_to_path(
                str(folder / "node.pem")
            )

    @property
    def second(self) -> str:
        return self.blocks["kafka-2.properties"]

    def file(self, node: int, name: str, *blocks: str) -> Path:
        """Writes blocks of the page as a file of that machine."""
        folder = self.home / f"kafka-{node}"
        text = "".join(self.blocks[block] for block in blocks)
        text = re.sub(r"kafka-(\d):(\d+)", lambda found: self.address(int(found[1]), int(found[2])), text)
        text = text.replace("/etc/barnabas", str(folder)).replace("/var/lib/barnabas", str(folder / "data"))
        path = folder / name
        path.write_text(text)
        return path

    def address(self, node: int, port: int = 9092) -> str:
        return f"127.0.0.{node}:{self.ports[node, port]}"

    def start(self, node: int) -> None:
        properties = self.file(node, "server.properties", f"kafka-{node}.properties", "common.properties")
        self.run("storage", "format", "--cluster-id", CLUSTER_ID, "--config", str(properties))
        output = self.home / f"kafka-{node}" / "output"
        with output.open("ab") as said:
            process = subprocess.Popen(
                [*BARNABAS, "serve", str(properties)], stdout=said, stderr=said, env=environment()
            )
        self.processes.append(process)

    def wait_for_all(self) -> None:
        """Returns when each node says where it listens, which it does when it is unfenced."""
        end = time.monotonic() + 60
        for node in (1, 2, 3):
            output = self.home / f"kafka-{node}" / "output"
            while "listens on" not in output.read_text():
                assert time.monotonic() < end, output.read_text()
                time.sleep(0.05)

    def run(self, *words: str) -> str:
        ran = subprocess.run([*BARNABAS, *words], capture_output=True, text=True, env=environment(), check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    machines = Machines(tmp_path)
    yield machines
    for process in machines.processes:
        process.kill()
        process.wait()


def test_a_cluster_on_three_machines(machines: Machines) -> None:
    for node in (2, 1, 3):  # in any order
        machines.start(node)
    client = machines.file(1, "client.properties", "client.properties")
    common = ["--command-config", str(client), "--bootstrap-server"]
    machines.wait_for_all()
    machines.run("topics", *common, machines.address(1), "--create", "--topic", "orders", "--partitions", "3")
    folder = machines.home / "kafka-1"
    producer = Producer({
        "bootstrap.servers": machines.address(2), "acks": "all", "security.protocol": "SSL",
        "ssl.ca.location": str(folder / "authority.pem"), "ssl.certificate.location": str(folder / "node.pem"),
        "ssl.key.location": str(folder / "node.pem"),
    })  # fmt: skip
    for partition in range(3):
        producer.produce("orders", b"tea", partition=partition)
    assert producer.flush(30) == 0
    described = machines.run("topics", *common, machines.address(3), "--describe", "--topic", "orders")
    assert len(re.findall(r"(\d,\d,\d)\s+\d,\d,\d", described)) == 3, described  # replicas, and the ISR
    under = machines.run("topics", *common, machines.address(2), "--describe", "--under-replicated-partitions")
    assert under.strip() == ""
