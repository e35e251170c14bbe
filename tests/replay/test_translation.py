"""Mapping of recorded values to those of this run."""

from barnabas.records.batch import batches
from barnabas.records.builder import build_batch
from barnabas.replay.meanings import Meaning
from barnabas.replay.translation import Scope, Translation
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.produce import ProduceRequest

RECORDED_ID, NEW_ID = b"a" * 16, b"b" * 16


def translated(translation, request, version):
    before = request.encode(version=version)
    has_changed = translation.translate(request, version, translation.scope(request))
    assert has_changed == (request.encode(version=version) != before)
    return request


def test_a_fetch_by_topic_id():
    translation = Translation()
    translation.topics[RECORDED_ID] = "orders"
    translation.learn(Meaning.TOPIC_ID, Scope(), RECORDED_ID, NEW_ID)
    translation.learn(Meaning.SESSION_ID, Scope(), 5, 77)
    translation.learn(Meaning.OFFSET, Scope("orders", 1), 1000, 10)
    translation.learn(Meaning.LEADER_EPOCH, Scope("orders", 1), 8, 0)
    kind = FetchRequest.FetchTopic
    partitions = [
        kind.FetchPartition(partition=at, fetch_offset=1002, current_leader_epoch=8, partition_max_bytes=1)
        for at in (0, 1)
    ]
    topics = [kind(topic_id=RECORDED_ID, partitions=partitions)]
    request = FetchRequest(max_wait_ms=1, min_bytes=1, session_id=5, session_epoch=2, topics=topics)
    translated(translation, request, 13)
    assert (request.session_id, request.topics[0].topic_id) == (77, NEW_ID)
    found = [(each.fetch_offset, each.current_leader_epoch) for each in request.topics[0].partitions]
    assert found == [(1002, 8), (12, 0)]


def test_generations_are_those_of_a_group():
    translation = Translation()
    translation.learn(Meaning.GENERATION, Scope(group="billing"), 3, 1)
    translation.learn(Meaning.MEMBER_ID, Scope(), "m-1", "m-2")
    for group, generation in (("billing", 1), ("kitchen", 3)):
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=3, member_id="m-1", topics=[], retention_time_ms=-1
        )
        translated(translation, request, 8)
        assert (request.generation_id_or_member_epoch, request.member_id) == (generation, "m-2")


def test_batches_have_the_producer_of_this_run():
    translation = Translation()
    translation.learn(Meaning.PRODUCER_ID, Scope(), 4, 9)
    translation.learn(Meaning.PRODUCER_EPOCH, Scope(producer_id=4), 1, 6)
    kind = ProduceRequest.TopicProduceData
    records = build_batch([(b"k", b"v", 1)], producer_id=4, producer_epoch=1, base_sequence=3)
    partition = kind.PartitionProduceData(index=0, records=bytes(records))
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[kind(name="orders", partition_data=[partition])])
    translated(translation, request, 9)
    (batch,) = batches(request.topic_data[0].partition_data[0].records)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 6, 3)
    assert batch.is_intact()


def test_a_transaction_has_the_producer_of_this_run():
    translation = Translation()
    translation.learn(Meaning.PRODUCER_ID, Scope(), 4, 9)
    translation.learn(Meaning.PRODUCER_EPOCH, Scope(producer_id=4), 0, 1)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="billing", v3_and_below_producer_id=4, v3_and_below_producer_epoch=0
    )
    translated(translation, request, 3)
    assert (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch) == (9, 1)


def test_what_is_none_stays():
    translation = Translation()
    for meaning, value in ((Meaning.PRODUCER_ID, -1), (Meaning.MEMBER_ID, ""), (Meaning.TOPIC_ID, bytes(16))):
        translation.learn(meaning, Scope(), value, 5)
        assert translation.value(meaning, Scope(), value) == value


def test_the_first_that_is_learned_holds():
    translation = Translation()
    translation.learn(Meaning.NODE, Scope(), 1, 7)
    translation.learn(Meaning.NODE, Scope(), 1, 8)
    assert translation.value(Meaning.NODE, Scope(), 1) == 7


def test_leader_epochs_follow_leaders_that_move():
    translation = Translation()
    scope = Scope("orders", 1)
    for replayed in (2, 4, 3):
        translation.learn(Meaning.LEADER_EPOCH, scope, 0, replayed)
    assert translation.value(Meaning.LEADER_EPOCH, scope, 0) == 4
