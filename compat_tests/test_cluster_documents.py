"""The how-to page of a cluster on three machines, run on three addresses of this one."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from compat_tests.apache_kafka.load import Load
from compat_tests.ports import free_port
from compat_tests.running import environment
from compat_tests.test_documents import ROOT

PAGE = ROOT / "docs/how-to/cluster-on-three-machines.md"
GROWING = ROOT / "docs/how-to/from-one-node-to-three.md"
PROPERTIES = re.compile(r"^```properties\n# (?P<name>.*?)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LEAVING = "## A node leaves"
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
BARNABAS = [sys.executable, "-m", "barnabas"]


class Machines:
    """Three directories, each with the files of one machine; ``kafka-2`` is 127.0.0.2."""

    page = PAGE

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ports = {(node, port): free_port() for node in (1, 2, 3) for port in (9092, 9093)}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.blocks = {found["name"]: found["body"] for found in PROPERTIES.finditer(self.page.read_text())}
        own = re.compile(r"node.id=\d|kafka-\d")
        for node in (2, 3) if "kafka-1.properties" in self.blocks else ():
            of_first = self.blocks["kafka-1.properties"]
            text = own.sub(lambda found, node=node: f"{found[0][:-1]}{node}", of_first)
            self.blocks.setdefault(f"kafka-{node}.properties", text)
        authority = trustme.CA()
        for node in (1, 2, 3):
            folder = home / f"kafka-{node}"
            folder.mkdir()
            authority.cert_pem.write_to_path(str(folder / "authority.pem"))
            authority.issue_cert(f"127.0.0.{node}").private_key_and_cert_chain_pem.write_to_path(
                str(folder / "node.pem")
            )

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
        self.serve(node, properties)

    def serve(self, node: int, properties: Path, *options: str) -> None:
        output = self.home / f"kafka-{node}" / "output"
        with output.open("ab") as said:
            command = [*BARNABAS, "serve", str(properties), *options]
            process = subprocess.Popen(command, stdout=said, stderr=said, env=environment())
        self.processes.append(process)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def wait_for(self, *nodes: int) -> None:
        """Returns when each node says where it listens, which it does when it is unfenced."""
        end = time.monotonic() + 60
        for node in nodes:
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
    machines.end()


def test_a_cluster_on_three_machines(machines: Machines) -> None:
    for node in (2, 1, 3):  # in any order
        machines.start(node)
    client = machines.file(1, "client.properties", "client.properties")
    common = ["--command-config", str(client), "--bootstrap-server"]
    machines.wait_for(1, 2, 3)
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


class Growing(Machines):
    """The machines of the page on adding nodes."""

    page = GROWING

    def start_as(self, node: int, formatted: str, *options: str, cluster_id: str = CLUSTER_ID) -> None:
        properties = self.file(node, "server.properties", f"kafka-{node}.properties", "common.properties")
        self.run("storage", "format", formatted, "--cluster-id", cluster_id, "--config", str(properties))
        self.serve(node, properties, *options)

    def begin(self) -> None:
        """Starts the first node as the whole quorum."""
        (serve,) = re.findall(
            r"^\$ barnabas serve server.properties (--override.*)$", GROWING.read_text(), re.MULTILINE
        )
        self.start_as(1, "--standalone", *serve.split())
        self.wait_for(1)

    def reassign(self, text: str) -> None:
        """Runs the commands of a part of the page that move partitions."""
        found = re.findall(r"^```json\n(.*?)^```$", GROWING.read_text(), re.MULTILINE | re.DOTALL)
        topics, moves = self.home / "topics.json", self.home / "moves.json"
        topics.write_text(found[0])
        for command in re.findall(r"^\$ barnabas (reassign .*)$", text, re.MULTILINE):
            words, _, _ = command.replace("kafka-1:9092", self.address(1)).partition(" | ")
            said = self.run(*words.replace("topics.json", str(topics)).replace("moves.json", str(moves)).split())
            if "--generate" in words:
                moves.write_text(said.splitlines()[-1])

    def cluster_id(self, node: int) -> str:
        return self.run("cluster", "cluster-id", "--bootstrap-server", self.address(node)).split()[-1]

    def until_voters(self, *nodes: int) -> dict[int, str]:
        """Returns the directory ids of the voters when these nodes have a vote."""
        end = time.monotonic() + 30
        while True:
            status = self.run("quorum", "--bootstrap-server", self.address(1), "describe", "--status")
            (voters,) = re.findall(r"^CurrentVoters: *(.*)$", status, re.MULTILINE)
            directories = {each["id"]: each["directoryId"] for each in json.loads(voters)}
            if list(directories) == list(nodes):
                return directories
            assert time.monotonic() < end, status


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    machines = Growing(tmp_path)
    yield machines
    machines.end()


def test_from_one_node_to_three(growing: Growing, tmp_path: Path) -> None:
    text, _, _ = GROWING.read_text().partition(LEAVING)
    growing.begin()
    where = ["--bootstrap-server", growing.address(1)]
    growing.run("topics", *where, "--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "1")
    load = Load(growing.address(1), "orders")
    consumer = Consumer({"bootstrap.servers": growing.address(1), "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.poll(30) is not None
    consumer.close()
    for node in (2, 3):
        growing.start_as(node, "--no-initial-controllers")
    growing.wait_for(2, 3)
    growing.until_voters(1, 2, 3)
    growing.reassign(text)
    load.goes_on()
    described = growing.run("topics", *where, "--describe", "--topic", "orders")
    assert len(re.findall(r"(\d,\d,\d)\s+\d,\d,\d", described)) == 3, described
    load.stop()
    assert load.failures == []
    growing.run("topics", *where, "--create", "--topic", "later", "--partitions", "3", "--replication-factor", "3")
    load = Load(",".join(map(growing.address, (1, 2, 3))), "later")
    load.goes_on()
    growing.processes[0].kill()  # any machine may be down
    admin = AdminClient({"bootstrap.servers": growing.address(2)})
    end = time.monotonic() + 30
    while any(each.leader == 1 for each in admin.list_topics("later").topics["later"].partitions.values()):
        assert time.monotonic() < end
        time.sleep(0.1)
    load.goes_on()
    load.stop()
    assert load.failures == []


def test_a_node_leaves(growing: Growing) -> None:
    _, _, text = GROWING.read_text().partition(LEAVING)
    growing.begin()
    for node in (2, 3):
        growing.start_as(node, "--no-initial-controllers")
    growing.wait_for(2, 3)
    directories = growing.until_voters(1, 2, 3)
    where = ["--bootstrap-server", growing.address(1)]
    growing.run("topics", *where, "--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "3")
    load = Load(",".join(map(growing.address, (1, 2))), "orders")
    consumer = Consumer({"bootstrap.servers": growing.address(1), "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.poll(30) is not None
    consumer.close()
    cordon, remove, unregister = (
        re.sub(r"directory-id \S+", f"directory-id {directories[3]}", found).replace("kafka-1:9092", growing.address(1))
        for found in re.findall(r"^\$ barnabas ((?:configs|quorum|cluster) .*)$", text, re.MULTILINE)
    )
    growing.run(*cordon.split())
    growing.reassign(text)
    growing.run("topics", *where, "--create", "--topic", "later", "--partitions", "6", "--replication-factor", "2")
    (left,) = (each for each in json.loads(growing.run("brokers", *where, "--json")) if each["id"] == 3)
    assert left["replicas"] == 0, left
    growing.processes[2].terminate()
    growing.processes[2].wait(30)
    growing.run(*remove.split())
    growing.run(*unregister.split())
    growing.until_voters(1, 2)
    assert [each["id"] for each in json.loads(growing.run("brokers", *where, "--json"))] == [1, 2]
    load.goes_on()
    load.stop()
    assert load.failures == []


def test_a_lone_node_becomes_one_that_can_grow(growing: Growing) -> None:
    text = GROWING.read_text()
    (upgrade,) = re.findall(r"^\$ barnabas (features .*)$", text, re.MULTILINE)
    folder = growing.home / "kafka-1"
    lone = folder / "lone.properties"
    lone.write_text(f"node.id=1\nlisteners=PLAINTEXT://{growing.address(1)}\nlog.dirs={folder / 'data'}\n")
    growing.serve(1, lone)
    growing.wait_for(1)
    where = ["--bootstrap-server", growing.address(1)]
    growing.run("topics", *where, "--create", "--topic", "kept", "--partitions", "1")
    growing.run(*upgrade.replace("kafka-1:9092", growing.address(1)).split())
    growing.processes[0].terminate()
    growing.processes[0].wait(30)
    (folder / "output").unlink()
    growing.serve(1, growing.file(1, "server.properties", "kafka-1.properties", "common.properties"))
    growing.wait_for(1)
    assert "kept" in growing.run("topics", *where, "--list")
    growing.start_as(2, "--no-initial-controllers", cluster_id=growing.cluster_id(1))
    growing.wait_for(2)
    growing.until_voters(1, 2)
