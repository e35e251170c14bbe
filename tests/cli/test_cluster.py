"""``barnabas cluster``: nodes as processes, which are stopped, killed and started by their ids."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from barnabas.cli.commands import barnabas

LONGEST_S = 60


class Running:
    """A cluster that was started in a terminal."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas", "cluster", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        line = self.process.stdout.readline()
        found = re.search(r"listens on (\S+); files in (\S+)", line)
        assert found is not None, line + self.process.stdout.read()
        self.address, self.directory = found.groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdout.close()
        self.process.wait(LONGEST_S)

    def order(self, *order):
        return CliRunner().invoke(barnabas, ["cluster", *order, "--dir", self.directory])

    def processes(self):
        """Returns the process and the address of each running node."""
        found = re.findall(r"Node (\d) at (\S+): (?:runs as process (\d+)|stopped)", self.order("status").output)
        return {int(node): (int(process) if process else None, address) for node, address, process in found}


def until(condition):
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def brokers_of(address):
    """Returns the unfenced brokers; None if the requested one has stopped."""
    try:
        return described(address)
    except KafkaError:
        return None


def described(address):
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        return {each["broker_id"] for each in admin.describe_cluster()["brokers"] if not each["is_fenced"]}
    finally:
        admin.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Running("--nodes", "3", "--dir", str(tmp_path_factory.mktemp("cluster") / "a")) as running:
        yield running


def test_nodes_are_killed_stopped_and_started_by_their_ids(cluster):
    assert brokers_of(cluster.address) == {1, 2, 3}
    before = cluster.processes()
    assert cluster.order("kill", "3").output == "Node 3: stopped\n"
    assert cluster.processes()[3] == (None, before[3][1])
    until(lambda: brokers_of(cluster.address) == {1, 2})
    assert cluster.order("start", "3").exit_code == 0
    until(lambda: brokers_of(cluster.address) == {1, 2, 3})
    assert cluster.order("restart", "2").exit_code == 0
    after = cluster.processes()
    assert [address for _, address in after.values()] == [address for _, address in before.values()]
    assert after[1] == before[1]
    assert after[2][0] != before[2][0]
    assert after[3][0] != before[3][0]


def test_records_survive_kill_9_of_each_node(cluster):
    admin = KafkaAdminClient(bootstrap_servers=cluster.address)
    admin.create_topics({"orders": {"num_partitions": 3, "replication_factor": 3}})
    admin.close()
    addresses = [address for _, address in cluster.processes().values()]
    producer = KafkaProducer(bootstrap_servers=addresses, acks="all")
    sent = []
    for node in (2, 3, 1):
        for _ in range(10):
            sent.append(b"%d" % len(sent))
            producer.send("orders", sent[-1]).get(LONGEST_S)
        assert cluster.order("kill", str(node)).exit_code == 0
        for _ in range(10):
            sent.append(b"%d" % len(sent))
            producer.send("orders", sent[-1]).get(LONGEST_S)
        assert cluster.order("start", str(node)).exit_code == 0
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=addresses, auto_offset_reset="earliest", consumer_timeout_ms=1000)
    consumer.subscribe(["orders"])
    received = []
    until(lambda: received.extend(record.value for record in consumer) or len(received) >= len(sent))
    consumer.close()
    assert sorted(received, key=int) == sent


def test_librdkafka_goes_on_while_every_node_is_restarted(cluster):
    from confluent_kafka import Consumer, Producer

    admin = KafkaAdminClient(bootstrap_servers=cluster.address)
    admin.create_topics({"payments": {"num_partitions": 3, "replication_factor": 3}})
    admin.close()
    addresses = ",".join(address for _, address in cluster.processes().values())
    failed = []
    producer = Producer({"bootstrap.servers": addresses, "enable.idempotence": True, "linger.ms": 1})
    sent = 0
    for node in (2, 3, 1):
        for _ in range(100):
            producer.produce("payments", b"%d" % sent, on_delivery=lambda error, _: failed.append(error))
            sent += 1
        producer.poll(0)
        assert cluster.order("restart", str(node)).exit_code == 0
    assert producer.flush(LONGEST_S) == 0
    assert failed == [None] * sent
    consumer = Consumer({"bootstrap.servers": addresses, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["payments"])
    received = []
    until(lambda: received.extend(each.value() for each in consumer.consume(100, 0.5)) or len(received) >= sent)
    consumer.close()
    assert sorted(received, key=int) == [b"%d" % number for number in range(sent)]


def test_orders_that_cannot_be_carried_out(cluster, tmp_path):
    refused = cluster.order("stop", "9")
    assert refused.exit_code == 1
    assert "there is no node 9, but 1, 2, 3" in refused.output
    elsewhere = CliRunner().invoke(barnabas, ["cluster", "status", "--dir", str(tmp_path)])
    assert elsewhere.exit_code == 1
    assert f"No cluster runs in {tmp_path}" in elsewhere.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_cluster_stops_cleanly_and_starts_again_as_it_was(tmp_path, number):
    options = ("--nodes", "2", "--dir", str(tmp_path / "b"))
    found = []
    for _ in range(2):
        with Running(*options) as running:
            admin = KafkaAdminClient(bootstrap_servers=running.address)
            found.append((running.address, admin.describe_cluster()["cluster_id"]))
            admin.close()
            processes = [process for process, _ in running.processes().values()]
            running.process.send_signal(number)
            assert running.process.wait(LONGEST_S) == 0
            assert not any(map(is_alive, processes))
            assert (tmp_path / "b" / "node-2" / "data" / ".kafka_cleanshutdown").exists()
            assert not (tmp_path / "b" / "control").exists()
    assert found[0] == found[1]


def test_nodes_end_with_the_process_that_started_them():
    with Running("--nodes", "2") as running:
        processes = [process for process, _ in running.processes().values()]
        running.process.kill()
        until(lambda: not any(map(is_alive, processes)))


def test_the_ready_file_says_where_the_nodes_are_and_the_cluster_ends_with_its_parent(tmp_path):
    file = tmp_path / "ready.json"
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    options = ("--nodes", "2", "--ready-file", str(file), "--override", "barnabas.admin.listener=127.0.0.1:0")
    with Running(*options, "--parent-pid", str(parent.pid)) as running:
        ready = json.loads(file.read_text())
        assert ready["pid"] == running.process.pid
        processes = running.processes()
        assert {node["node_id"]: (node["pid"], node["bootstrap_servers"]) for node in ready["nodes"]} == processes
        assert ready["bootstrap_servers"] == ",".join(address for _, address in processes.values())
        for node in ready["nodes"]:
            with urllib.request.urlopen(node["admin"], timeout=LONGEST_S) as answer:
                assert json.load(answer)["node_id"] == node["node_id"]
        parent.communicate(b"\n", LONGEST_S)
        assert running.process.wait(LONGEST_S) == 0


def test_the_admin_api_of_each_node(tmp_path):
    """Node 1 of two is the only controller."""
    file = tmp_path / "ready.json"
    options = ("--nodes", "2", "--ready-file", str(file), "--override", "barnabas.admin.listener=127.0.0.1:0")
    with Running(*options) as running:
        addresses = {node["node_id"]: node["admin"] for node in json.loads(file.read_text())["nodes"]}

        def ask(node, method, path, content=None):
            body = None if content is None else json.dumps(content).encode()
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(addresses[node] + path, body, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=LONGEST_S) as answer:
                    return answer.status, json.loads(answer.read() or "null")
            except urllib.error.HTTPError as error:
                return error.code, json.loads(error.read())["error"]

        def names(node):
            return [topic["name"] for topic in ask(node, "GET", "/topics")[1]]

        for node in addresses:
            status, made = ask(
                node, "POST", "/topics", {"name": f"made-{node}", "configs": {"retention.ms": 3_600_000}}
            )
            assert (status, made["name"], made["configs"]) == (201, f"made-{node}", {"retention.ms": "3600000"})
            assert len(made["partitions"][0]["replicas"]) == 2
            assert ask(node, "POST", "/topics", {"name": f"made-{node}"})[1]["type"] == "TOPIC_ALREADY_EXISTS"
        until(lambda: names(1) == names(2) == ["made-1", "made-2"])

        leader = ask(1, "GET", "/topics/made-1")[1]["partitions"][0]["leader"]
        status, error = ask(3 - leader, "POST", "/topics/made-1/records", [{"value": "tea", "partition": 0}])
        assert (status, error["message"]) == (409, f"partition 0 of made-1 is led by node {leader}")
        assert ask(leader, "POST", "/topics/made-1/records", [{"value": "tea", "partition": 0}])[0] == 201
        until(lambda: [len(ask(node, "GET", "/topics/made-1/records")[1]) for node in addresses] == [1, 1])
        for node in addresses:
            for _ in range(2):
                assert ask(node, "POST", "/clock/advance", {"days": 30})[0] == 200
        until(lambda: [ask(node, "GET", "/topics/made-1/records")[1] for node in addresses] == [[], []])
        assert brokers_of(running.address) == {1, 2}

        for path in ("/reset", "/states"):
            assert ask(1, "POST", path)[0] == 409
        for node in addresses:
            assert ask(node, "DELETE", f"/topics/made-{node}")[0] == 204
        until(lambda: names(1) == names(2) == [])


def test_a_node_that_cannot_start_is_reported(tmp_path):
    refused = subprocess.run(
        [sys.executable, "-m", "barnabas", "cluster", "--dir", str(tmp_path), "--override", "num.partitions=none"],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: Invalid value none for configuration num.partitions")
