"""A broker that is killed while a partition is moved between directories: logs and metadata agree after the restart."""

import itertools

import pytest

from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles
from tests.broker.opening import opened
from tests.submitting import create_topic

PATHS = ("/a", "/b")


class Node:
    """A broker with two directories, and one partition."""

    def __init__(self, files):
        self.clock, self.files = ManualClock(), files
        properties = {"node.id": "1", "log.dirs": ",".join(PATHS), "listeners": "PLAINTEXT://127.0.0.1:9092"}
        self.broker = opened(BrokerConfig.from_properties(properties), files, self.clock)

    @property
    def partition(self):
        return self.broker.partition("t", 0)

    def append(self, value):
        batch = RecordBatch.parse(build_batch([(None, value, 0)]))
        return self.partition.append(batch, self.clock.time_ms()).base_offset

    def move(self):
        manager = self.broker.log_manager
        manager.moves.start(self.partition.log, manager.directories[1])
        self.clock.advance(0)

    def values(self):
        log = self.partition.log
        data = log.read(0, 1 << 20, up_to=log.high_watermark, minimum_one=True)
        return [record.value for batch in batches(data) for record in records_of(batch)]

    def directory(self):
        return self.partition.log.log_directory

    def directory_in_metadata(self):
        return self.broker.image.topics_by_name["t"].partitions[0].directories


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_broker_that_dies_while_a_partition_moves(power_cut):
    for fail_after in itertools.count(1):
        files = FaultyFiles()
        node = Node(files)
        create_topic(node.broker, "t", 1, {})
        assert node.directory().path == "/a"
        acknowledged = [b"%d" % number for number in range(5)]
        for value in acknowledged:
            node.append(value)
        node.partition.log.flush()
        flushed = len(acknowledged)
        files.fail_at = len(files.changes) + fail_after
        try:
            node.move()
            node.append(b"moved")
            acknowledged.append(b"moved")
        except (OSError, KafkaError):
            pass
        back = Node(files.survivor(power_cut=power_cut))
        promised = acknowledged[:flushed] if power_cut else acknowledged
        assert back.values()[: len(promised)] == promised
        for _ in range(2):
            assert back.directory_in_metadata() == (back.directory().directory_id,)
            assert sum(f"{path}/t-0" in back.files.directories for path in PATHS) == 1
            back.clock.advance(0)
        assert not back.broker.log_manager.moves.under_way
        assert back.values()[: len(promised)] == promised
        assert back.append(b"more") == len(back.values()) - 1
        if not files.has_failed:
            break
    assert back.directory().path == "/b"
    assert fail_after > 25
