"""A broker in memory with its groups, which can be restarted: groups commit offsets with and without transactions."""

from pathlib import Path

from barnabas.broker.markers import write_markers
from barnabas.clock import ManualClock
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.config import BrokerConfig
from barnabas.groups.messages import Join, OffsetCommit, OffsetToCommit, Sync
from barnabas.log.files import MemoryFiles
from barnabas.records.batch import RecordBatch, batches
from barnabas.transactions.messages import Marker, TopicPartition
from tests.broker.opening import opened
from tests.kinds import kind
from tests.stable_offsets import stable_offsets
from tests.submitting import create_topic, ready

GOLDEN = Path(__file__).parent / "golden"


class Life:
    """A broker in memory, with restarts."""

    def __init__(self, **properties: str) -> None:
        self.properties = {
            "node.id": "1",
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "50",
            "group.initial.rebalance.delay.ms": "0",
        } | properties
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        self.start()
        create_topic(self.broker, "t", 2, {})
        self.broker.coordinators.groups.create_topic(ready)

    def start(self) -> None:
        self.broker = opened(BrokerConfig.from_properties(self.properties), self.files, self.clock)

    def restart(self) -> None:
        self.broker.close()
        self.start()

    def put(self, partition: int, name: str, size: int | None = None) -> None:
        """Copies the log of another broker, or the beginning of it."""
        log = self.broker.partition(CONSUMER_OFFSETS, partition).log
        data = bytearray.fromhex((GOLDEN / name).read_text())[:size]
        log.append_as_follower(data, now_ms=self.clock.time_ms())

    def kill(self) -> None:
        """Kills the broker, and restarts it from its files."""
        left, now_ms = self.files.directories, self.clock.time_ms()
        self.clock = ManualClock(now_ms)
        self.files = MemoryFiles(self.clock)
        for path, names in left.items():
            self.files.makedirs(path)
            for name, file in names.items():
                self.files.create(f"{path}/{name}").write(file.content)
        self.start()

    def commit(self, group_id="g", offset=7, partition=0, producer=None):
        """Commits an offset, and returns the kind of its error, or None."""
        kinds = []
        offsets = [OffsetToCommit("t", partition, offset)]
        self.broker.groups.commit_offsets(
            OffsetCommit(group_id, offsets, producer=producer),
            lambda errors: kinds.extend(None if error is None else type(error) for error in errors),
        )
        return kinds

    def end(self, producer, group_id="g", *, is_commit=True):
        """Writes the marker to the partition of the group; returns the kind of its error, or None."""
        results = []
        marker = Marker(producer.id, producer.epoch, 0, is_commit, 1)
        place = TopicPartition(CONSUMER_OFFSETS, self.broker.coordinators.groups.partition_of(group_id))
        write_markers(self.broker, marker, [place], lambda errors: results.append(kind(errors[place])))
        return results

    def join(self, group_id="g"):
        """Returns the member id of the only member of a group, with its assignment."""
        joined, synced = [], []
        join = Join(group_id, "", None, "a", "/::1", 10_000, 60_000, "consumer", (("range", b"?"),), None, False)
        self.broker.groups.join(join, joined.append)
        self.clock.advance(0)
        (result,) = joined
        assignments = [(result.member_id, b"all")]
        sync = Sync(group_id, result.generation_id, result.member_id, assignments=assignments)
        self.broker.groups.sync(sync, synced.append)
        assert synced[0].error is None
        return result.member_id

    def batches(self, partition: int) -> list[RecordBatch]:
        log = self.broker.partition(CONSUMER_OFFSETS, partition).log
        found: list[RecordBatch] = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found += batches(log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True))
            offset = found[-1].next_offset
        return found


def offsets(life, group_id):
    found = life.broker.groups.fetch_offsets(group_id)
    return {(topic, index): each.offset for topic, rows in found.items() for index, each in rows.items()}


def unstable(life, group_id):
    return set(stable_offsets(life.broker.groups, group_id)[1])
