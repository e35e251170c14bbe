"""The cost of replicas in a cluster of Barnabas: idle, while they are moved, and when their leader is shut down.

Knows nothing of replication. Each node is a broker and a controller.
"""

import contextlib
import itertools
import shutil
import statistics
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from confluent_kafka import ElectionType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition as Place

from barnabas.records.builder import build_batch
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from benchmarks import librdkafka, load, servers
from benchmarks.cluster import ALL
from benchmarks.measure import MIB, Row, median_ratio
from compat_tests.apache_kafka.mixed import APACHE, BARNABAS, Combined, Node
from tests.raw import Client

TOPICS, PARTITIONS = 100, 10
REPLICAS = TOPICS * PARTITIONS
"""Of each of three nodes."""

IDLE_S = 20.0
RECORD = 10_240
A_SECOND = 1000


def process(node: Node) -> psutil.Process:
    assert node.process is not None
    return psutil.Process(node.process.pid)


def cpu_s(node: Node) -> float:
    times = process(node).cpu_times()
    return float(times.user + times.system)


def create(cluster: Combined, topics: list[NewTopic]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for future in admin.create_topics(topics).values():
        future.result(120)


def idle(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures a thousand replicas on each of three nodes: memory, idle CPU time, and the time of a start."""
    sizes, costs, starts = [], [], []
    for index in range(rounds):
        with Combined(folder / f"idle-{index}", [BARNABAS] * 3) as cluster:
            nodes = list(cluster.brokers.values())
            time.sleep(IDLE_S / 2)
            empty = [process(node).memory_info().rss for node in nodes]
            create(cluster, [NewTopic(f"topic-{number}", PARTITIONS, 3) for number in range(TOPICS)])
            time.sleep(IDLE_S / 2)
            full = [process(node).memory_info().rss for node in nodes]
            sizes += [(after - before) / REPLICAS / 1e3 for before, after in zip(empty, full, strict=True)]
            before = [cpu_s(node) for node in nodes]
            time.sleep(IDLE_S)
            costs += [(cpu_s(node) - was) / IDLE_S * 100 for node, was in zip(nodes, before, strict=True)]
            nodes[-1].stop()
            began = time.perf_counter()
            nodes[-1].start()
            starts.append(time.perf_counter() - began)
    size, cost, start = max(sizes), max(costs), max(starts)
    what = f"three nodes of {REPLICAS:,} replicas"
    yield Row(f"{what}: memory of a replica, KB, the most of all nodes", f"{size:.1f}", "", None, "<= 20", size <= 20)
    yield Row(f"{what}: CPU of an idle node, % of a core", f"{cost:.1f}", "", None, "<= 3", cost <= 3)
    yield Row(f"{what}: start of one, s", f"{start:.2f}", "", None, "<= 3", start <= 3)


def moved(folder: Path, rounds: int, gigabytes: float = 4.3) -> Iterator[Row]:
    """Moves a partition to a broker without replicas, beside a copy of its file over one connection."""
    pairs = []
    for index in range(rounds):
        home = folder / f"moved-{index}"
        with Combined(home, [BARNABAS] * 3) as cluster:
            first, second = cluster.brokers[1], cluster.brokers[2]
            create(cluster, [NewTopic("moved", 1, replica_assignment=[[1]], config={"min.insync.replicas": "1"})])
            librdkafka.produce(cluster.bootstrap, lambda: 0.0, "moved", RECORD, round(gigabytes * 1e9), ALL)
            segments = sorted((first.data / "moved-0").glob("*.log"))
            total = sum(segment.stat().st_size for segment in segments)
            began = time.perf_counter()
            reassign(cluster, "moved", 2)
            ours = total / (time.perf_counter() - began) / 1e6
            copied = sum(segment.stat().st_size for segment in (second.data / "moved-0").glob("*.log"))
            assert copied == total, f"{copied} of {total} bytes are on the other broker"
        shutil.rmtree(home)
        pairs.append((ours, one_stream(folder / f"stream-{index}", total)))
    ratio = median_ratio(pairs)
    found, bare = (statistics.median(each) for each in zip(*pairs, strict=True))
    what = f"{gigabytes:.1f} GB moved to another broker, MB/s"
    yield Row(what, f"{found:,.0f}", f"one stream {bare:,.0f}", ratio, ">= 0.7x", ratio >= 0.7)


def reassign(cluster: Combined, topic: str, node_id: int) -> None:
    """Returns when the only replica of a partition is on the node, and nowhere else."""
    kafka = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        kafka.alter_partition_reassignments({Place(topic, 0): [node_id]})
        while kafka.list_partition_reassignments():
            time.sleep(0.02)
    finally:
        kafka.close()


def one_stream(path: Path, total: int) -> float:
    """Writes a file, and measures its transfer over one connection into a second file, in MB/s."""
    piece, count, ahead = b"v" * MIB, total // MIB, 2
    with path.open("wb") as file:
        for _ in range(count):
            file.write(piece)
    buffer = memoryview(bytearray(MIB))
    copy_path = path.with_suffix(".copy")
    with servers.baseline("reader", path) as reader, load.connected(reader.port) as connection:
        began = time.perf_counter()
        with copy_path.open("wb", buffering=0) as copy:
            for index in range(count + ahead):
                if index < count:
                    connection.sendall(struct.pack(">qq", index * MIB, MIB))
                if index >= ahead:
                    have = 0
                    while have < MIB:
                        have += connection.recv_into(buffer[have:])
                    copy.write(buffer)
        took = time.perf_counter() - began
    path.unlink()
    copy_path.unlink()
    return count * MIB / took / 1e6


def shut_down(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures the longest time without acknowledgements while a leader is shut down, beside Apache Kafka.

    librdkafka looks for the new leader once a second, so its longest wait says nothing about brokers. It is the load,
    and must see no error; the time is that of a client that asks all brokers in turn.
    """
    pairs = []
    for index in range(rounds):
        of_round = []
        for kind in (BARNABAS, APACHE):
            with Combined(folder / f"{kind}-{index}", [kind] * 3) as cluster:
                create(cluster, [NewTopic("led", 1, replica_assignment=[[1, 2, 3]])])
                of_round.append(statistics.median(gap_ms(cluster, cluster.brokers[1]) for _ in range(3)))
        pairs.append((of_round[0], of_round[1]))
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    what = "three copies: shutdown of a leader, time without one, ms"
    yield Row(what, f"{ours:.0f}", f"Apache {theirs:.0f}", median_ratio(pairs), "<= 300 ms", ours <= 300)


def gap_ms(cluster: Combined, leader: Node) -> float:
    """Stops a leader under load, and restarts it; returns the longest time between two acknowledgements.

    :raises AssertionError: a record of the load is not acknowledged
    """
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0})
    stopping = threading.Timer(1, leader.stop)
    patient = Patient([node.port for node in cluster.brokers.values()], "led")
    patient.start()
    stopping.start()
    end = time.perf_counter() + 4
    while time.perf_counter() < end or stopping.is_alive():
        producer.produce("led", b"v" * 100, on_delivery=lambda error, _: errors.append(error) if error else None)
        producer.poll(1 / A_SECOND)
    assert producer.flush(60) == 0 and not errors, errors
    gap_s = patient.longest_gap_s()
    leader.start()
    back(cluster, leader)
    return gap_s * 1000


class Patient(threading.Thread):
    """A client that writes one record after the other, always to the current leader."""

    def __init__(self, ports: list[int], led: str) -> None:
        """
        :param led: the topic
        """
        super().__init__()
        self._acknowledged: list[float] = []
        self._ends = False
        self._ports = itertools.cycle(ports)
        topic = ProduceRequest.TopicProduceData
        batch = build_batch([(None, b"v" * 100, time.time_ns() // 1_000_000)])
        rows = [topic.PartitionProduceData(index=0, records=batch)]
        self._request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic(name=led, partition_data=rows)])

    def run(self) -> None:
        while not self._ends:
            with contextlib.suppress(OSError), Client(next(self._ports), timeout=30) as client:
                while not self._ends and self._is_taken(client):
                    self._acknowledged.append(time.perf_counter())
            time.sleep(0.001)

    def longest_gap_s(self) -> float:
        """Stops the client; returns the longest time between two acknowledgements."""
        self._ends = True
        self.join()
        return max(after - before for before, after in itertools.pairwise(self._acknowledged))

    def _is_taken(self, client: Client) -> bool:
        response = client.ask(self._request, 9)
        return isinstance(response, ProduceResponse) and not response.responses[0].partition_responses[0].error_code


def back(cluster: Combined, leader: Node) -> None:
    """Returns when a broker that was restarted leads its partition again, all replicas in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    node_id = int(leader.properties["node.id"])
    while True:
        found = admin.list_topics("led", timeout=5).topics["led"].partitions[0]
        if len(found.isrs) == 3 and found.leader == node_id:
            return
        if len(found.isrs) == 3:
            admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("led", 0)]).result(30)
        time.sleep(0.1)
