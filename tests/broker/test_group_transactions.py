"""Offsets in transactions over their log: the state after a restart, a kill and a compaction.

The golden file is a segment of ``__consumer_offsets`` that Apache Kafka 4.3.1 wrote.
"""

import contextlib
from random import Random

import pytest

from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.errors import GroupIdNotFound, InvalidProducerEpoch, NotCoordinator
from barnabas.groups.messages import OffsetCommit, OffsetToCommit
from barnabas.offsets.pending import Producer
from tests.broker.group_life import Life, offsets, unstable
from tests.groups.offsets_model import Model
from tests.submitting import ready, submitted

ONE, TWO = Producer(1, 0), Producer(2, 0)
NEXT = Producer(1, 1)


@pytest.fixture
def life():
    return Life()


@pytest.fixture(params=["restart", "kill"])
def again(life, request):
    """Stops the broker in one way or the other, and restarts it."""
    return getattr(life, request.param)


def test_of_transactions_only_the_committed_ones_count(life):
    # Committed: t-0 at 5 and t-1 at 6; aborted: 50; never ended: 70.
    life.put(28, "consumer_offsets_28_transactions.hex")
    life.restart()
    assert offsets(life, "readers") == {("songs", 0): 5, ("songs", 1): 6}
    assert unstable(life, "readers") == {("songs", 1)}


def test_what_is_open_stays_open_and_then_ends(life, again):
    life.commit(offset=1)
    assert life.commit(offset=5, producer=ONE) == [None]
    again()
    assert (offsets(life, "g"), unstable(life, "g")) == ({("t", 0): 1}, {("t", 0)})
    assert life.end(ONE) == [None]
    assert (offsets(life, "g"), unstable(life, "g")) == ({("t", 0): 5}, set())
    again()
    assert (offsets(life, "g"), unstable(life, "g")) == ({("t", 0): 5}, set())


def test_what_was_aborted_stays_so(life, again):
    life.commit(offset=1)
    life.commit(offset=5, producer=ONE)
    life.end(ONE, is_commit=False)
    again()
    assert (offsets(life, "g"), unstable(life, "g")) == ({("t", 0): 1}, set())


def test_a_marker_in_another_partition_ends_nothing_here(life, again):
    life.commit("g", 5, producer=ONE)
    life.commit("h", 6, producer=ONE)
    life.end(ONE, "h")
    for _ in range(2):
        assert (offsets(life, "g"), unstable(life, "g")) == ({}, {("t", 0)})
        assert (offsets(life, "h"), unstable(life, "h")) == ({("t", 0): 6}, set())
        again()


def test_a_marker_of_an_earlier_epoch_ends_nothing(life, again):
    life.commit(offset=5, producer=NEXT)
    assert life.end(ONE) == [InvalidProducerEpoch]
    assert unstable(life, "g") == {("t", 0)}
    again()
    assert life.end(ONE) == [InvalidProducerEpoch]
    assert life.commit(offset=6, producer=ONE) == [InvalidProducerEpoch]
    life.end(NEXT)
    assert offsets(life, "g") == {("t", 0): 5}


def test_a_marker_of_a_later_epoch_ends_what_was_written_before_it(life, again):
    life.commit(offset=5, producer=ONE)
    assert life.end(NEXT, is_commit=False) == [None]
    again()
    assert (offsets(life, "g"), unstable(life, "g")) == ({}, set())


def test_readers_of_the_topic_wait_for_the_end(life):
    life.commit(offset=1)
    log = life.broker.partition(CONSUMER_OFFSETS, 3).log
    life.commit(offset=5, producer=ONE)
    assert (log.last_stable_offset, log.log_end_offset) == (1, 2)
    life.end(ONE)
    assert (log.last_stable_offset, log.log_end_offset) == (3, 3)


def test_where_commits_wait_for_the_disk_so_do_ends(monkeypatch):
    """A commit that is earlier in the log, and safe at the same time, must not undo the result of a marker."""
    life = Life(**{"log.flush.interval.messages": "1"})
    assert life.commit(offset=1) == [None]
    monkeypatch.setattr(life.broker.log_manager.housekeeping, "flush", lambda log, up_to: None)
    found = [
        life.commit(offset=2),
        life.commit(offset=3, producer=ONE),
        life.end(ONE),
        life.commit(offset=4, partition=1),
    ]
    assert found == [[], [], [], []]
    assert offsets(life, "g") == {("t", 0): 1}
    stable = []
    life.broker.groups.fetch_stable_offsets("g", lambda *reply: stable.append(reply))
    assert stable == []
    life.broker.partition(CONSUMER_OFFSETS, 3).log.flush()
    assert found == [[None], [None], [None], [None]]
    assert (offsets(life, "g"), unstable(life, "g")) == ({("t", 0): 3, ("t", 1): 4}, set())
    ((error, committed, pending),) = stable
    assert (error, committed["t"][0].offset, len(pending)) == (None, 3, 0)


def test_who_hears_that_a_commit_is_safe_and_commits_at_once_is_the_last(monkeypatch):
    """Other callbacks, for earlier offsets in the log, are still to be called."""
    life = Life(**{"log.flush.interval.messages": "2"})
    assert life.commit(offset=1) == [None]
    monkeypatch.setattr(life.broker.log_manager.housekeeping, "flush", lambda log, up_to: None)
    results = []

    def heard(errors):
        results.append(errors)
        results.append(life.commit(offset=4))

    groups = life.broker.groups
    groups.commit_offsets(OffsetCommit("g", [OffsetToCommit("t", 0, 2)]), heard)
    groups.commit_offsets(OffsetCommit("g", [OffsetToCommit("t", 0, 3)]), results.append)
    assert results == []
    life.broker.partition(CONSUMER_OFFSETS, 3).log.flush()
    assert results == [[None], [None], [None]]
    assert offsets(life, "g") == {("t", 0): 4}
    life.kill()
    assert offsets(life, "g") == {("t", 0): 4}


def test_without_its_topic_nothing_is_pending(life):
    life.commit(offset=5, producer=ONE)
    submitted(life.broker.controller, DeleteTopics([(CONSUMER_OFFSETS, bytes(16))]))
    with pytest.raises(NotCoordinator):
        unstable(life, "g")
    life.broker.coordinators.groups.create_topic(ready)
    life.commit(offset=1)
    assert life.end(ONE) == [None]
    assert offsets(life, "g") == {("t", 0): 1}


def test_what_another_coordinates_is_not_pending_here(life):
    for group_id in ("g", "h"):
        life.commit(group_id, 5, producer=ONE)
    groups = life.broker.coordinators.groups
    groups.resign(groups.partition_of("g"))
    with pytest.raises(NotCoordinator):
        unstable(life, "g")
    assert unstable(life, "h") == {("t", 0)}


def replayed(model, life):
    for group_id in ("g", "h"):
        found = {partition: offset for (_, partition), offset in offsets(life, group_id).items()}
        assert found == model.committed(group_id)
        assert {partition for _, partition in unstable(life, group_id)} == model.unstable(group_id)


@pytest.mark.parametrize("seed", range(10))
def test_compaction_changes_nothing(seed):
    """For any open transactions, and several records of a key."""
    random, model = Random(seed), Model()
    life = Life(**{"offsets.topic.num.partitions": "1"})
    gone = 0
    for group_id in "gh":
        life.commit(group_id, 0)
        model.write(group_id, 0, 0)
    for value in range(150):
        group_id, partition, producer = random.choice("gh"), random.randrange(3), random.choice([ONE, TWO])
        what = random.randrange(10)
        if what < 3:
            life.commit(group_id, value, partition)
            model.write(group_id, partition, value)
        elif what < 7:
            life.commit(group_id, value, partition, producer)
            model.write(group_id, partition, value, producer.id)
        elif what < 9:
            is_commit = random.random() < 0.6
            life.end(producer, is_commit=is_commit)
            model.end(producer.id, is_commit)
        else:
            with contextlib.suppress(GroupIdNotFound):  # nothing of it was left at the last start
                life.broker.groups.delete_offsets(group_id, [("t", partition)], lambda error, errors: None)
            model.forget(group_id, partition)
        if value % 5 == 4:
            life.broker.partition(CONSUMER_OFFSETS, 0).log.roll(life.clock.time_ms())
        if value % 30 == 29:
            gone += compacted(life)
            random.choice([life.restart, life.kill])()
            replayed(model, life)
    assert gone > 50


def compacted(life):
    """Compacts the log; returns the number of removed records."""
    before = sum(batch.count for batch in life.batches(0))
    life.broker.partition(CONSUMER_OFFSETS, 0).log.flush()
    life.broker.log_manager.cleaner.check_logs()
    return before - sum(batch.count for batch in life.batches(0))
