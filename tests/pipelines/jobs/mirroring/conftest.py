"""Two brokers in this process and a mirror between them, step by step and without Spark.

Knows nothing of any one test.
"""

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.pipelines.client.cluster import Cluster, TopicPartition
from barnabas.pipelines.jobs.mirroring.checkpoints import Checkpoint
from barnabas.pipelines.jobs.mirroring.copying import Copied, copy
from barnabas.pipelines.jobs.mirroring.options import MirrorOptions
from barnabas.pipelines.jobs.mirroring.planner import Planner
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.offsets import StreamOffset
from barnabas.testing import Broker


class Pair:
    """A source called prague and a target called vienna."""

    def __init__(self, source: Broker, target: Broker) -> None:
        self.source, self.target = source, target
        self.options: dict[str, Any] = {}

    def spec(self, **options: Any) -> Spec:
        return MirrorOptions(
            source=self.source.bootstrap_servers,
            target=self.target.bootstrap_servers,
            **{
                "source_alias": "prague",
                "target_alias": "vienna",
                "refresh_seconds": 1e-9,
                "source_client": QUICK,
                "target_client": QUICK,
                **options,
            },
        ).spec()

    @staticmethod
    def clusters(spec: Spec) -> tuple[Cluster, Cluster]:
        return Cluster.of(spec.source_settings), Cluster.of(spec.target_settings)

    def planner(self, spec: Spec) -> Planner:
        return Planner(spec, *self.clusters(spec))

    def mirror(self, spec: Spec, start: StreamOffset | None = None, **limits: Any) -> tuple[StreamOffset, list[Copied]]:
        """Runs a query over the existing records, from its checkpoint, or without one."""
        planner = self.planner(spec)
        start = start or planner.initial()
        end = planner.latest(start, None)
        return end, [copy(spec, each, **limits) for each in planner.ranges(start, end)]

    def send(self, topic: str, *values: bytes, partition: int = 0, broker: Broker | None = None) -> None:
        producer = Producer({"bootstrap.servers": (broker or self.source).bootstrap_servers, "linger.ms": 0})
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(30) == 0

    def values(self, topic: str, *, committed: bool = True) -> list[bytes | None]:
        """Returns the values in the target, in the order of offsets within each partition."""
        return [record.value for record in self.target.records(topic, committed=committed)]

    def delete(self, topic: str, *, target: bool = False) -> None:
        """Deletes a topic of the source, or of the target."""
        admin = self.clusters(self.spec())[target].admin()
        admin.delete_topics([topic])
        admin.close()

    def commit(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        """Commits for a group of the source without members."""
        self.clusters(self.spec())[0].commit(group, {TopicPartition(topic, partition): offset})

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        """Returns the committed offset of a group in the target."""
        key = TopicPartition(topic, partition)
        found = self.clusters(self.spec())[1].committed(group, [key]).get(key)
        return None if found is None else int(found.offset)


QUICK = {"retry.backoff.ms": "10", "default.api.timeout.ms": "10000"}


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Broker() as source, Broker() as target:
        yield Pair(source, target)


def read_checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Decodes a record of MirrorMaker's checkpoints, as ``RemoteClusterUtils`` does."""
    group, rest = _read_string(key)
    topic, rest = _read_string(rest)
    (partition,) = struct.unpack(">i", rest)
    _, upstream, downstream = struct.unpack_from(">hqq", value)
    metadata, _ = _read_string(value[18:])
    return Checkpoint(group, topic, partition, upstream, downstream, metadata)


def _read_string(data: bytes) -> tuple[str, bytes]:
    (length,) = struct.unpack_from(">h", data)
    return data[2 : 2 + length].decode(), data[2 + length :]
