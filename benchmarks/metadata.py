"""10,000 topics of three partitions with three replicas, created by three controllers, snapshotted and replayed.

Knows nothing of records. The controllers are nodes of their own; the brokers are only registered, so that what is
measured is the metadata's, not that of 90,000 logs.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.image.records import records_of_image
from barnabas.cluster.quorum.client import CommittedBatch
from barnabas.cluster.quorum.record_batches import decode_batches
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId, decode_snapshot, encode_snapshot
from barnabas.wire.message import Request
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from benchmarks.cluster import HEAP, beside
from benchmarks.measure import Row
from compat_tests.apache_kafka.controller_script import Script
from compat_tests.apache_kafka.mixed import APACHE, BARNABAS, CLUSTER_ID, Node
from compat_tests.ports import free_port
from tests.raw import Client

TOPICS, PARTITIONS, REPLICAS = 10_000, 3, 3
AT_ONCE = 500
"""Topics of a request: a controller refuses one of more than 10,000 records."""
CREATE_TOPICS, DESCRIBE_QUORUM = 7, 2  #: the versions of requests
SEGMENT = Path("__cluster_metadata-0", "00000000000000000000.log")
BUDGET_S = 2.0
PATIENCE_S = 60.0

T = TypeVar("T")


class Controllers:
    """Three controllers of one kind, with three registered brokers; a context manager."""

    def __init__(self, home: Path, kind: str) -> None:
        ports = {100 + index: free_port() for index in range(3)}
        voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())
        self.nodes = {
            node_id: Node(
                kind,
                home / f"controller-{node_id}",
                {
                    "process.roles": "controller",
                    "node.id": str(node_id),
                    "listeners": f"CONTROLLER://127.0.0.1:{port}",
                    "controller.quorum.voters": voters,
                    "broker.session.timeout.ms": "3600000",
                },
                port,
                HEAP,
            )
            for node_id, port in ports.items()
        }

    def __enter__(self) -> "Controllers":
        try:
            with ThreadPoolExecutor() as starting:
                list(starting.map(Node.start, self.nodes.values()))
            self.leader = self._active()
            self._client = Client(self.leader.port, timeout=PATIENCE_S)
            script = Script(self.ask, CLUSTER_ID)
            for broker_id in range(1, REPLICAS + 1):
                wait(
                    lambda broker_id=broker_id: not script.register(broker_id)[1]["error_code"],
                    "a controller is active",
                )
                wait(lambda broker_id=broker_id: not script.beat(broker_id)[1]["is_fenced"], f"{broker_id} is unfenced")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.kill()

    def ask(self, request: Request, version: int) -> Any:
        return self._client.ask(request, version)

    def _active(self) -> Node:
        kind = DescribeQuorumRequest.TopicData
        partition = kind.PartitionData(partition_index=0)
        request = DescribeQuorumRequest(topics=[kind(topic_name="__cluster_metadata", partitions=[partition])])
        found = set[int]()

        def is_led() -> bool:
            for node in self.nodes.values():
                with Client(node.port) as client:
                    response = client.ask(request, DESCRIBE_QUORUM)
                assert isinstance(response, DescribeQuorumResponse)
                described = [each for topic in response.topics for each in topic.partitions if not each.error_code]
                found.update(each.leader_id for each in described)
            return bool(found & set(self.nodes))

        wait(is_led, "there is a leader")
        return self.nodes[(found & set(self.nodes)).pop()]

    def create(self, prefix: str, count: int) -> float:
        """Creates topics, and returns the seconds."""
        kind = CreateTopicsRequest.CreatableTopic
        began = time.perf_counter()
        for first in range(0, count, AT_ONCE):
            topics = [
                kind(
                    name=f"{prefix}-{number}",
                    num_partitions=PARTITIONS,
                    replication_factor=REPLICAS,
                    assignments=[],
                    configs=[],
                )
                for number in range(first, min(first + AT_ONCE, count))
            ]
            request = CreateTopicsRequest(topics=topics, timeout_ms=int(PATIENCE_S * 1000), validate_only=False)
            response = self.ask(request, CREATE_TOPICS)
            assert not any(each.error_code for each in response.topics), response.topics[0]
        return time.perf_counter() - began


def wait(holds: Callable[[], bool], what: str) -> None:
    """Returns when the condition holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(0.05)


def many_topics(folder: Path, rounds: int) -> Iterator[Row]:
    """Creation beside Apache Kafka's controllers; the log and a snapshot of it by a node of ours."""
    created: list[tuple[float, float]] = []
    spent: dict[str, list[float]] = {}
    for index in range(rounds):
        pair = []
        for kind in (BARNABAS, APACHE):
            with Controllers(folder / f"metadata-{index}-{kind}", kind) as controllers:
                controllers.create("warm", AT_ONCE)  # a JVM warms up
                pair.append(controllers.create("topic", TOPICS))
            if kind == BARNABAS:
                log = (controllers.leader.data / SEGMENT).read_bytes()
        created.append((pair[0], pair[1]))
        for what, seconds in replayed(log):
            spent.setdefault(what, []).append(seconds)
    what = f"three controllers: {TOPICS:,} topics of {PARTITIONS} x {REPLICAS} replicas"
    yield beside(f"{what} created, {AT_ONCE} a request, s", created)
    for name, each in spent.items():
        took = statistics.median(each)
        yield Row(f"{what} {name}, CPU s", f"{took:.2f}", "", None, f"<= {BUDGET_S:.0f}", took <= BUDGET_S)


def replayed(log: bytes) -> Iterator[tuple[str, float]]:
    """Yields the CPU seconds of replaying the log, of a snapshot, and of loading it."""
    loader, took = timed(lambda: from_log(log))
    yield "replayed from the log", took
    snapshot, took = timed(lambda: snapshot_of(loader.image))
    yield "snapshotted", took
    loaded, took = timed(lambda: from_snapshot(snapshot))
    yield "replayed from the snapshot", took
    assert loaded.image.topics_by_name == loader.image.topics_by_name
    assert len(loaded.image.topics_by_name) == TOPICS + AT_ONCE


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """Returns the result, and the seconds of CPU: nothing here waits, and the machine may be busy."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def from_log(data: bytes) -> MetadataLoader:
    loader = MetadataLoader()
    loader.committed([CommittedBatch.of(each) for each in decode_batches(data)])
    return loader


def snapshot_of(image: MetadataImage) -> bytes:
    return encode_snapshot(
        records_of_image(image), kraft=KRaftState(), metadata_version=image.metadata_version, epoch=1,
        last_timestamp=0, now_ms=0,
    )  # fmt: skip


def from_snapshot(data: bytes) -> MetadataLoader:
    loader, found = MetadataLoader(), decode_snapshot(data)
    loader.snapshot_loaded(SnapshotId(len(found.records), 1), found.records, found.timestamp)
    return loader
