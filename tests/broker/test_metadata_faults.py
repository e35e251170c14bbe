"""Each change of a file fails once while the metadata changes; acknowledged changes exist after a restart.

The broker is complete, without sockets; a change is acknowledged by its controller when it is on the disk.
"""

import itertools
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.controller.commands.configs import SET, ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.cluster.controller.commands.features import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate, UpdateFeatures
from barnabas.cluster.controller.commands.topics import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    MorePartitions,
    NewTopic,
)
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.log.log_directory import LogDirectoryError
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.testing.faults import FaultyFiles
from tests.broker.opening import opened
from tests.submitting import submitted

TOPIC = 2
PARTS = 4
"""The default run has each fourth operation, `make long` has all."""
PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "num.recovery.threads.per.data.dir": "1",
    "metadata.log.max.record.bytes.between.snapshots": "900",
    "metadata.max.retention.bytes": "2000",
    "log.retention.check.interval.ms": "600000",
}
CONFIG = BrokerConfig.from_properties(PROPERTIES)


class Node:
    """A broker on these files, and its acknowledged changes."""

    def __init__(self, files, promised):
        self.files, self.promised = files, promised
        self.clock = ManualClock()
        self.broker = opened(CONFIG, files, self.clock)

    def submit(self, command):
        """Returns the result, once it is committed. :raises KafkaError: the outcome is unknown"""
        return submitted(self.broker.controller, command)

    def create(self, name, partitions):
        self.promised.in_doubt.add(name)
        self.submit(CreateTopics([NewTopic(name, partitions, 1)]))
        self.promised.topics[name] = {"partitions": partitions}
        self.promised.in_doubt.discard(name)

    def grow(self, name, partitions):
        self.promised.in_doubt.add(name)
        self.submit(CreatePartitions([MorePartitions(name, partitions)]))
        self.promised.topics[name]["partitions"] = partitions
        self.promised.in_doubt.discard(name)

    def alter(self, name, value):
        change = ConfigChange("retention.ms", SET, value)
        self.promised.in_doubt.add(name)
        self.submit(IncrementalAlterConfigs([(ConfigResource(TOPIC, name), [change])]))
        self.promised.topics[name]["retention.ms"] = value
        self.promised.in_doubt.discard(name)

    def delete(self, name):
        self.promised.in_doubt.add(name)
        self.submit(DeleteTopics([(name, bytes(16))]))
        del self.promised.topics[name]
        self.promised.in_doubt.discard(name)

    def finalize(self, name, level, upgrade_type=UPGRADE):
        self.promised.in_doubt.add(name)
        self.submit(UpdateFeatures([FeatureUpdate(name, level, upgrade_type)]))
        self.promised.levels[name] = level
        self.promised.in_doubt.discard(name)

    def append(self, name, value):
        batch = RecordBatch.parse(build_batch([(None, value, self.clock.time_ms())]))
        self.broker.partition(name, 0).append(batch, self.clock.time_ms())
        self.promised.records.setdefault(name, []).append(value)

    def producer_id(self):
        producer_id = self.broker.producer_ids.next()
        self.promised.producer_ids.append(producer_id)


class Promised:
    """The acknowledged topics and their state, records, producer ids, levels; changes in progress are unknown."""

    def __init__(self):
        self.topics, self.records, self.producer_ids, self.in_doubt = {}, {}, [], set()
        self.levels = {}

    def check(self, broker, where, *, records=True):
        image = broker.image
        for name, level in self.levels.items():
            assert name in self.in_doubt or broker.finalized_features.get(name, 0) == level, where
        assert image.topics_by_name.keys() - self.in_doubt == self.topics.keys() - self.in_doubt, where
        for name, state in self.topics.items():
            if name in self.in_doubt:
                continue
            assert len(image.topics_by_name[name].partitions) == state["partitions"], where
            assert image.configs_of(TOPIC, name).get("retention.ms") == state.get("retention.ms"), where
            for index in range(state["partitions"]):
                partition = broker.partition(name, index)
                partition.check_leader()
                if index == 0 and records:
                    assert partition.log.log_end_offset >= len(self.records.get(name, [])), where


def story(files, promised):
    """Two runs of a broker: topics are created, grown, changed and deleted; snapshots are written and deleted."""
    node = Node(files, promised)
    node.create("orders", 2)
    node.append("orders", b"first")
    node.alter("orders", "1000")
    node.create("doomed", 1)
    node.grow("orders", 3)
    node.producer_id()
    node.finalize("transaction.version", 1, SAFE_DOWNGRADE)
    node.delete("doomed")
    node.create("doomed", 2)
    node.append("doomed", b"again")
    node.broker.metadata.snapshots.write_snapshot()
    node.alter("orders", "2000")
    node.clock.advance(61)
    node.broker.close()
    if node.broker.metadata.log.is_offline:
        return
    node = Node(files, promised)
    node.producer_id()
    node.alter("doomed", "3000")
    node.finalize("kraft.version", 1)
    node.append("orders", b"second")
    node.broker.metadata.snapshots.write_snapshot()
    node.broker.close()


def survivors(files, n):
    """Yields the files of the next process: after a kill, and after power cuts with different losses."""
    yield files.survivor(), True
    if files.lasting == "for ever":
        yield files.survivor(power_cut=True), False
        yield files.survivor(power_cut=True, chance=Random(n)), False


@pytest.mark.parametrize("lasting", ["once", "for ever"])
@pytest.mark.parametrize(
    "part", [pytest.param(each, marks=[pytest.mark.long] if each else []) for each in range(PARTS)]
)
def test_the_metadata_survives_a_failure_at_any_operation(lasting, part):
    for n in itertools.count(part + 1, PARTS):
        files, promised = FaultyFiles(n, lasting=lasting, torn=Random(n)), Promised()
        try:
            story(files, promised)
        except (KafkaError, LogDirectoryError, MetadataLogError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 150
            assert not promised.in_doubt
            return
        where = f"failure at operation {n}, {files.changes[n - 1]}"
        for survivor, has_records in survivors(files, n):
            again = Node(survivor, promised)
            promised.check(again.broker, where, records=has_records)
            assert again.broker.producer_ids.next() not in promised.producer_ids, where
        again.create("after", 1)
        again.broker.close()
        once_more = Node(survivor.survivor(), promised)
        promised.check(once_more.broker, where, records=has_records)
        assert "after" in once_more.broker.image.topics_by_name, where
