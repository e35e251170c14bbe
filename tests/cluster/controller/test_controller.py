"""The controller's results, and when they are returned: the fake disk flushes when a test calls it."""

import pytest

from barnabas.cluster.controller.commands.features import FeatureUpdate, UpdateFeatures
from barnabas.cluster.controller.commands.nodes import AllocateProducerIds
from barnabas.cluster.controller.commands.topics import CreateTopics, DeleteTopics, NewTopic
from barnabas.cluster.quorum.client import Leadership
from barnabas.errors import InvalidUpdateVersion, NotController, TopicAlreadyExists, UnknownServerError
from barnabas.wire.messages.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.registering import registration


class Slow:
    """Node metadata whose log is flushed only by :meth:`flush`."""

    def __init__(self, opener):
        self.metadata = opener.started()
        self.log = self.metadata.log
        self.controller = self.metadata.controller
        self.log._services.request_flush = lambda log, up_to: None
        self.answers = []

    def submit(self, command, answer=lambda result: result):
        self.controller.submit(
            command, lambda result, error: self.answers.append(answer(result) if error is None else type(error))
        )

    def create(self, name):
        self.submit(CreateTopics([NewTopic(name, 1, 1)]), lambda results: (name, type(results[0].error)))

    def flush(self, up_to=None):
        self.log.flush(up_to)

    @property
    def topics(self):
        return set(self.metadata.image.topics_by_name)


@pytest.fixture
def slow(open_metadata):
    return Slow(open_metadata)


NONE = type(None)


def test_a_change_is_answered_and_shown_when_it_is_committed(slow):
    slow.create("a")
    assert (slow.answers, slow.topics) == ([], set())
    assert slow.log.high_watermark < slow.log.log_end_offset
    slow.flush()
    assert (slow.answers, slow.topics) == ([("a", NONE)], {"a"})
    assert slow.log.high_watermark == slow.log.log_end_offset


def test_a_decision_sees_what_is_not_committed_yet(slow):
    slow.create("a")
    slow.create("a")
    slow.create("b")
    assert slow.answers == []
    slow.flush()
    assert slow.answers == [("a", NONE), ("a", TopicAlreadyExists), ("b", NONE)]


def test_what_changes_nothing_waits_for_what_it_has_seen(slow):
    slow.submit(DeleteTopics([("a", bytes(16))]), len)
    assert slow.answers == [1]
    slow.create("a")
    slow.submit(DeleteTopics([("b", bytes(16))]), len)
    assert slow.answers == [1]
    slow.flush()
    assert slow.answers == [1, ("a", NONE), 1]


def test_answers_come_as_far_as_the_disk_has_come(slow):
    slow.create("a")
    end = slow.log.log_end_offset
    slow.create("b")
    slow.flush(end)
    assert (slow.answers, slow.topics) == ([("a", NONE)], {"a"})
    slow.flush()
    assert slow.topics == {"a", "b"}


def test_whoever_waits_is_told_when_the_disk_fails(slow):
    slow.create("a")
    slow.submit(DeleteTopics([("b", bytes(16))]))
    slow.log.go_offline("of a test")
    assert slow.answers == [NotController, NotController]
    slow.create("c")
    assert slow.answers[2:] == [NotController]
    assert slow.topics == set()


def test_lost_leadership_takes_back_what_is_not_committed(slow):
    slow.create("a")
    slow.flush()
    slow.create("b")
    assert set(slow.controller.image.topics_by_name) == {"a", "b"}
    slow.metadata.quorum.leadership = Leadership(2, 5)
    slow.controller.leadership_changed(slow.metadata.quorum.leadership)
    assert slow.answers[1:] == [NotController]
    assert slow.controller.image is slow.metadata.image
    assert slow.topics == {"a"}


def test_a_refused_command_leaves_nothing(slow):
    end = slow.log.log_end_offset
    slow.submit(UpdateFeatures([FeatureUpdate("transaction.version", 9)]))
    slow.submit(AllocateProducerIds)  # not a command
    assert slow.answers == [InvalidUpdateVersion, UnknownServerError]
    assert slow.log.log_end_offset == end


def test_a_callback_that_fails_does_not_keep_the_others_waiting(slow, caplog):
    slow.submit(CreateTopics([NewTopic("a", 1, 1)]), lambda results: results.nope)
    slow.create("b")
    slow.flush()
    assert slow.answers == [("b", NONE)]
    assert "callback" in caplog.text


def test_a_command_of_a_callback_is_decided_on_what_is_committed(slow):
    slow.submit(CreateTopics([NewTopic("a", 1, 1)]), lambda results: slow.create("b"))
    slow.flush()
    assert slow.topics == {"a"}
    slow.flush()
    assert slow.topics == {"a", "b"}


@pytest.mark.parametrize("batch_bytes", [8 << 20, 1500])
def test_a_broker_epoch_is_the_offset_of_its_first_record(open_metadata, batches_of, monkeypatch, batch_bytes):
    """Whatever precedes it: control records, the beginning of a transaction. Changes of partitions come first."""
    metadata = open_metadata.started()
    metadata.submit(CreateTopics([NewTopic("orders", 40, 1)]))
    metadata.update_features(FeatureUpdate("kraft.version", 1))
    monkeypatch.setattr("barnabas.cluster.quorum.record_batches.MAX_BATCH_BYTES", batch_bytes)
    metadata.controller.heartbeats.forget(1)  # otherwise it would have a session
    epoch = metadata.submit(registration(1, 7))
    records = [
        (batch.base_offset + index, record)
        for batch, found in batches_of(metadata.log)
        for index, record in enumerate(found)
    ]
    _, record = [each for each in records if isinstance(each[1], RegisterBrokerRecord)][-1]
    assert epoch == record.broker_epoch == metadata.image.brokers[1].epoch
    first = next(offset for offset, each in records if isinstance(each, PartitionChangeRecord))
    assert epoch == first
    frames = [
        type(each) for _, each in records[-50:] if isinstance(each, BeginTransactionRecord | EndTransactionRecord)
    ]
    assert frames == ([] if batch_bytes > 1500 else [BeginTransactionRecord, EndTransactionRecord])
