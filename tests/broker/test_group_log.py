"""The group coordinator over its log: the partitions of records, and the state after a restart.

The golden files are segments of ``__consumer_offsets`` that Apache Kafka 4.3.1 wrote.
"""

import pytest

from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.errors import (
    CoordinatorNotAvailable,
    KafkaStorageError,
    NotCoordinator,
    NotEnoughReplicas,
    UnknownServerError,
)
from barnabas.groups.messages import Join, Sync
from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.wire.messages.group_records import GroupMetadataKey, OffsetCommitKey, decode_key
from tests.broker.group_life import Life, offsets
from tests.submitting import ready, submitted


@pytest.fixture
def life():
    return Life()


def test_a_group_is_kept_in_the_partition_of_its_id(life):
    life.commit("g")  # 103 % 50, by Java's hash
    (batch,) = life.batches(3)
    (record,) = records_of(batch)
    assert decode_key(record.key) == OffsetCommitKey(group="g", topic="t", partition=0)
    assert record.timestamp == life.clock.time_ms()
    assert (batch.producer_id, batch.base_sequence, batch.compression) == (-1, 0, Compression.NONE)


def test_a_delete_is_one_batch(life):
    life.commit("g")
    results = []
    life.broker.groups.delete("g", results.append)
    assert results == [None]
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
    # The session begins again with the start.
    life.clock.advance(9)
    groups.heartbeat("g", member_id, None, 1)
    life.clock.advance(10)
    assert groups.describe("g").state == "Empty"


def test_an_id_that_no_record_has_a_place_for_leaves_nothing_behind():
    life = Life(**{"offsets.topic.num.partitions": "1"})  # logs are checked every 15 s, for eight days
    longest = "é" * ((1 << 14) - 1)
    for refused in (life.commit, life.join):
        with pytest.raises(UnknownServerError):
            refused(longest + "é")
    life.clock.advance(8 * 24 * 3600)  # expired offsets are deleted as usual
    assert life.commit(longest) == [None]
    assert [group.group_id for group in life.broker.groups.list_groups()] == [longest]


@pytest.mark.parametrize("too_long", ["client_id", "group_instance_id", "protocol_type", "protocols"])
def test_a_member_that_no_record_has_a_place_for_is_not_let_in(life, too_long):
    join = Join("g", "", None, "a", "/::1", 10_000, 60_000, "consumer", (("range", b"?"),), None, False)
    text, results = "i" * (1 << 15), []
    changed = {too_long: ((text, b"?"),) if too_long == "protocols" else text}
    life.broker.groups.join(join._replace(**changed), results.append)
    assert [type(result.error) for result in results] == [UnknownServerError]
    assert life.broker.groups.list_groups() == []


def test_the_longest_names_are_kept(life):
    longest = "i" * ((1 << 15) - 1 - 37)
    join = Join("g", "", longest, longest, "/::1", 10_000, 60_000, "consumer", (("range", b"?"),), None, False)
    joined, synced = [], []
    life.broker.groups.join(join, joined.append)
    life.clock.advance(0)
    (result,) = joined
    sync = Sync("g", result.generation_id, result.member_id, group_instance_id=longest, assignments=[])
    life.broker.groups.sync(sync, synced.append)
    assert synced[0].error is None
    life.restart()
    assert [each.client_id for each in life.broker.groups.describe("g").members] == [longest]


def test_what_was_deleted_stays_deleted(life):
    life.commit("g")
    life.broker.groups.delete("g", lambda error: None)
    life.restart()
    assert life.broker.groups.list_groups() == []


def test_apaches_records_are_understood(life):
    life.put(3, "consumer_offsets_3.hex")
    life.restart()
    # The last records delete the group and its offset.
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
    life.broker.groups.heartbeat("g", member.member_id, None, 1)


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
    submitted(life.broker.controller, DeleteTopics([("t", bytes(16))]))
    assert offsets(life, "g") == {}
    life.restart()
    assert offsets(life, "g") == {}


def test_without_its_topic_nobody_is_the_coordinator(life):
    life.join("g")
    life.commit("simple")
    answers = []
    join = Join("g", "", None, "b", "/::1", 10_000, 60_000, "consumer", (("range", b"?"),), None, False)
    life.broker.groups.join(join, answers.append)
    submitted(life.broker.controller, DeleteTopics([(CONSUMER_OFFSETS, bytes(16))]))
    assert [type(answer.error) for answer in answers] == [NotCoordinator]
    assert life.broker.groups.list_groups() == []
    with pytest.raises(NotCoordinator):
        life.broker.groups.fetch_offsets("simple")
    life.clock.advance(60)  # no session is left to expire


@pytest.mark.parametrize(
    ("error", "expected"), [(KafkaStorageError, NotCoordinator), (NotEnoughReplicas, CoordinatorNotAvailable)]
)
def test_an_error_of_the_log_is_returned_as_a_coordinators(life, monkeypatch, error, expected):
    def append(*_, **__):
        raise error

    monkeypatch.setattr(type(life.broker.partition(CONSUMER_OFFSETS, 3)), "append", append)
    assert life.commit("g") == [expected]
    assert offsets(life, "g") == {}


def test_the_topic_is_made_once(life):
    made = life.broker.image.topics_by_name[CONSUMER_OFFSETS]
    life.broker.coordinators.groups.create_topic(ready)
    assert life.broker.image.topics_by_name[CONSUMER_OFFSETS] == made


def test_member_ids_differ(life):
    assert life.join("a") != life.join("b")
