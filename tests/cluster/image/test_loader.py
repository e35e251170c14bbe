import pytest

from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.quorum.client import CommittedBatch
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


def topic(name):
    return TopicRecord(name=name, topic_id=name.encode().ljust(16, b"."))


def batch(base_offset, *records, epoch=1):
    last_offset = base_offset + max(len(records), 1) - 1  # without records: a control batch
    return CommittedBatch(base_offset, last_offset, epoch, 1000 + last_offset, 100, records)


@pytest.fixture
def loader():
    loader = MetadataLoader()
    loader.published = []
    loader.publishers.append(lambda image, delta: loader.published.append(names(delta.new_topics)))
    return loader


def names(topics):
    return [each.name for each in topics.values()]


def test_batches_of_one_commit_are_published_once(loader):
    loader.committed([batch(0, topic("a"), topic("b")), batch(2, topic("c"), epoch=2)])
    assert loader.published == [["a", "b", "c"]]
    assert (loader.image.offset, loader.image.epoch, loader.last_timestamp) == (2, 2, 1002)


def test_a_control_batch_moves_the_offset_and_publishes_nothing(loader):
    loader.committed([batch(0, epoch=3)])
    assert (loader.image.offset, loader.image.epoch, loader.published) == (0, 3, [])


@pytest.mark.parametrize("ends", [EndTransactionRecord(), AbortTransactionRecord(reason="of a test")])
def test_a_transaction_is_published_when_it_ends(loader, ends):
    loader.committed([batch(0, topic("before"))])
    loader.committed([batch(1, BeginTransactionRecord(), topic("a"))])
    assert loader.is_in_transaction
    loader.committed([batch(3, topic("b"))])
    assert (loader.image.offset, names(loader.image.topics_by_name)) == (0, ["before"])  # the snapshot's state
    loader.committed([batch(4, ends)])
    is_committed = isinstance(ends, EndTransactionRecord)
    assert loader.published == [["before"], ["a", "b"]][: 1 + is_committed]
    assert loader.image.offset == 4
    assert not loader.is_in_transaction


def test_a_snapshot_replaces_everything(loader):
    loader.committed([batch(0, topic("a"), BeginTransactionRecord(), topic("b"))])
    loader.snapshot_loaded(SnapshotId(70, 4), [topic("c")], 55)
    assert names(loader.image.topics_by_name) == ["c"]
    assert (loader.image.offset, loader.image.epoch, loader.last_timestamp) == (69, 4, 55)
    assert not loader.is_in_transaction


def test_records_that_contradict_each_other_are_refused(loader):
    with pytest.raises(MetadataLogError, match="between offsets 7 and 8"):
        loader.committed([batch(7, topic("a"), RemoveTopicRecord(topic_id=bytes(16)))])


def test_a_snapshot_on_a_running_node_is_published_as_what_has_changed(loader):
    loader.committed([batch(0, topic("a"), topic("b"))])
    seen = []
    loader.publishers.append(lambda image, delta: seen.append((names(delta.new_topics), names(delta.deleted_topics))))
    loader.snapshot_loaded(SnapshotId(9, 2), [topic("b"), topic("c")], 1000)
    assert seen == [(["c"], ["a"])]
