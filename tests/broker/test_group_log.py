"""The group coordinator over its log: where records go, and what is there after a restart.

The golden files are segments of ``__consumer_offsets`` that Apache Kafka 4.3.1 wrote.
"""

from pathlib import Path

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.commands import DeleteTopics
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.config import BrokerConfig
from barnabas.errors import NONE, KafkaStorageError, NotCoordinator, NotEnoughReplicas
from barnabas.groups.messages import Join, OffsetCommit, OffsetToCommit, Sync
from barnabas.log.files import MemoryFiles
from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.wire.messages.group_records import GroupMetadataKey, OffsetCommitKey, decode_key
from tests.broker.opening import opened

GOLDEN = Path(__file__).parent / "golden"


class Life:
    """A broker in memory, from one start to the next."""

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
        self.broker.create_topic("t", 2, {})
        self.broker.group_log.create_topic()

    def start(self) -> None:
        self.broker = opened(BrokerConfig.from_properties(self.properties), self.files, self.clock)

    def restart(self) -> None:
        self.broker.close()
        self.start()

    def put(self, partition: int, name: str, size: int | None = None) -> None:
        """What another broker has written, or the beginning of it."""
        log = self.broker.partition(CONSUMER_OFFSETS, partition).log
        data = bytearray.fromhex((GOLDEN / name).read_text())[:size]
        log.append_as_follower(data, now_ms=self.clock.time_ms())

    def commit(self, group_id="g", offset=7):
        told = []
        self.broker.groups.commit_offsets(OffsetCommit(group_id, [OffsetToCommit("t", 0, offset)]), told.extend)
        return told

    def join(self, group_id="g"):
        """The member id of somebody who is alone in its group and has its assignment."""
        joined, synced = [], []
        join = Join(group_id, "", None, "a", "/::1", 10_000, 60_000, "consumer", (("range", b"?"),), None, False)
        self.broker.groups.join(join, joined.append)
        self.clock.advance(0)
        (result,) = joined
        assignments = [(result.member_id, b"all")]
        sync = Sync(group_id, result.generation_id, result.member_id, assignments=assignments)
        self.broker.groups.sync(sync, synced.append)
        assert synced[0].error_code == NONE
        return result.member_id

    def batches(self, partition: int) -> list[RecordBatch]:
        log = self.broker.partition(CONSUMER_OFFSETS, partition).log
        data = log.read(log.log_start_offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True)
        return list(batches(data))


@pytest.fixture
def life():
    return Life()


def offsets(life, group_id):
    found = life.broker.groups.fetch_offsets(group_id)
    return {(topic, index): each.offset for topic, rows in found.items() for index, each in rows.items()}


def test_a_group_is_kept_in_the_partition_of_its_id(life):
    life.commit("g")  # 103 % 50, as Java hashes it
    (batch,) = life.batches(3)
    (record,) = records_of(batch)
    assert decode_key(record.key) == OffsetCommitKey(group="g", topic="t", partition=0)
    assert record.timestamp == life.clock.time_ms()
    assert (batch.producer_id, batch.base_sequence, batch.compression) == (-1, 0, Compression.NONE)


def test_a_delete_is_one_batch(life):
    life.commit("g")
    told = []
    life.broker.groups.delete("g", told.append)
    assert told == [NONE]
    records = list(records_of(life.batches(3)[-1]))
    assert [type(decode_key(record.key)) for record in records] == [OffsetCommitKey, GroupMetadataKey]
    assert [record.value for record in records] == [None, None]


def test_the_codec_of_the_topic():
    life = Life(**{"offsets.topic.compression.codec": "1"})
    life.commit("g")
    assert life.batches(3)[0].compression is Compression.GZIP
    life.restart()
    assert offsets(life, "g") == {("t", 0): 7}


def test_a_restart_keeps_members_and_offsets(life):
    member_id = life.join("g")
    life.commit("simple")
    life.clock.advance(9)
    life.restart()
    groups = life.broker.groups
    described = groups.describe("g")
    assert (described.state, described.protocol_type, described.protocol_name) == ("Stable", "consumer", "range")
    assert [(each.member_id, each.client_host, each.assignment) for each in described.members] == [
        (member_id, "/::1", b"all")
    ]
    assert offsets(life, "simple") == {("t", 0): 7}
    # The session begins anew with the start.
    life.clock.advance(9)
    assert groups.heartbeat("g", member_id, None, 1) == NONE
    life.clock.advance(10)
    assert groups.describe("g").state == "Empty"


def test_what_was_deleted_stays_deleted(life):
    life.commit("g")
    life.broker.groups.delete("g", lambda code: None)
    life.restart()
    assert life.broker.groups.list_groups() == []


def test_apaches_records_are_understood(life):
    life.put(3, "consumer_offsets_3.hex")
    life.restart()
    # Its last words: the group and its offset are deleted.
    assert offsets(life, "g") == {}
    assert life.broker.groups.list_groups() == []


def test_apaches_members_are_understood(life):
    life.put(3, "consumer_offsets_3.hex", 470)
    life.restart()
    described = life.broker.groups.describe("g")
    assert (described.state, described.protocol_type, described.protocol_name) == ("Stable", "consumer", "range")
    (member,) = described.members
    assert (member.client_id, member.client_host, member.assignment) == ("probe", "/127.0.0.1", b"abc")
    assert offsets(life, "g") == {("t", 0): 1}
    life.clock.advance(9)
    assert life.broker.groups.heartbeat("g", member.member_id, None, 1) == NONE


def test_of_transactions_only_the_committed_ones_count(life):
    # Committed: t-0 at 5 and t-1 at 6; aborted: 50; never ended: 70.
    life.put(28, "consumer_offsets_28_transactions.hex")
    life.restart()
    assert offsets(life, "readers") == {("songs", 0): 5, ("songs", 1): 6}


def test_what_cannot_be_read_does_not_keep_the_others_from_coming_back(life, caplog):
    life.commit("g")
    life.commit("simple")
    partition = life.broker.partition(CONSUMER_OFFSETS, 26)
    torn = RecordBatch.parse(build_batch([(b"\0\1\0\xff", b"", 0)]))
    partition.append(torn, life.clock.time_ms())
    life.restart()
    assert offsets(life, "g") == {("t", 0): 7}
    assert "__consumer_offsets-26" in caplog.text


def test_offsets_of_a_deleted_topic_go(life):
    life.commit("g")
    life.broker.controller.submit(DeleteTopics([("t", bytes(16))]))
    assert offsets(life, "g") == {}
    life.restart()
    assert offsets(life, "g") == {}


def test_without_its_topic_nobody_is_the_coordinator(life):
    life.join("g")
    life.commit("simple")
    answers = []
    join = Join("g", "", None, "b", "/::1", 10_000, 60_000, "consumer", (("range", b"?"),), None, False)
    life.broker.groups.join(join, answers.append)
    life.broker.controller.submit(DeleteTopics([(CONSUMER_OFFSETS, bytes(16))]))
    assert [answer.error_code for answer in answers] == [NotCoordinator.code]
    assert life.broker.groups.list_groups() == []
    with pytest.raises(NotCoordinator):
        life.broker.groups.fetch_offsets("simple")
    life.clock.advance(60)  # no session is left to end


@pytest.mark.parametrize(("error", "told"), [(KafkaStorageError, 16), (NotEnoughReplicas, 15)])
def test_an_error_of_the_log_is_told_as_a_coordinators(life, monkeypatch, error, told):
    def append(*_, **__):
        raise error

    monkeypatch.setattr(type(life.broker.partition(CONSUMER_OFFSETS, 3)), "append", append)
    assert life.commit("g") == [told]
    assert offsets(life, "g") == {}


def test_the_topic_is_made_once(life):
    made = life.broker.image.topics_by_name[CONSUMER_OFFSETS]
    life.broker.group_log.create_topic()
    assert life.broker.image.topics_by_name[CONSUMER_OFFSETS] == made


def test_member_ids_differ(life):
    assert life.join("a") != life.join("b")
