"""ShareFetch and ShareAcknowledge: waiting and its end, sessions, and the state after a restart."""

import gc

import pytest

from barnabas.api_handlers.share_answers import are_valid
from barnabas.api_handlers.share_fetch import Answering
from barnabas.broker.share_fetching import FIRST_READ_BYTES, ShareFetching
from barnabas.broker.share_partitions import MAX_CACHED_LIMITS
from barnabas.cluster.controller.commands.features import SAFE_DOWNGRADE, FeatureUpdate, UpdateFeatures
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.replication.partition import Partition
from barnabas.errors import (
    InvalidRecordState,
    InvalidRequest,
    InvalidShareSessionEpoch,
    NotLeaderOrFollower,
    ShareSessionLimitReached,
    ShareSessionNotFound,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.share.messages import SharePartitionKey
from tests.api_handlers.share_node import ACCEPT, REJECT, RELEASE, RENEW, ShareNode, acquired, errors
from tests.broker.opening import opened
from tests.submitting import reset_to_start, submitted


@pytest.fixture
def node():
    return ShareNode()


def test_records_are_the_logs_own_bytes(node):
    node.produce(2, 3)
    answer = node.fetch(0, 0)
    log = node.partition.log
    assert acquired(answer) == {0: [(0, 4, 1)]}
    (data,) = [bytes(each.records) for each in answer.responses[0].partitions]
    assert data == log.read(0, 1 << 20, up_to=log.high_watermark, minimum_one=True)
    assert answer.acquisition_lock_timeout_ms == 30_000


def test_only_batches_with_something_acquired_are_sent(node):
    node.produce(2, 2, 2, 2)
    node.fetch(0, 0)
    node.acknowledge(1, (0, 2, 3, [RELEASE]))
    answer = node.fetch(2)
    assert acquired(answer) == {0: [(2, 3, 2)]}
    assert [batch.base_offset for batch in batches(answer.responses[0].partitions[0].records)] == [2]


def test_no_more_is_read_than_is_wanted_and_no_less(node):
    node.produce(*[1] * 1500)
    log = node.partition.log
    answer = node.fetch(0, 0, max_records=1, batch_size=2000)
    assert bytes(answer.responses[0].partitions[0].records) == log.read(0, 1, up_to=1, minimum_one=True)
    answer = node.fetch(1, max_records=2000, batch_size=2000)
    assert acquired(answer) == {0: [(1, 1499, 1)]}, "in more than the first bytes that are read"
    data = bytes(answer.responses[0].partitions[0].records)
    assert data == log.read(1, 1 << 20, up_to=1500, minimum_one=True)


@pytest.fixture
def reads(monkeypatch):
    """Records the size of each read of a partition."""
    lengths = []
    read = Partition.read

    def counted(*arguments, **options):
        data = read(*arguments, **options)
        lengths.append(len(data))
        return data

    monkeypatch.setattr(Partition, "read", counted)
    return lengths


def test_what_comes_again_takes_no_reading_of_all_that_follows(node, reads):
    node.produce(*[1] * 3000)
    node.fetch(0, 0, max_records=2)
    node.acknowledge(1, (0, 0, 0, [RELEASE]))
    reads.clear()
    assert acquired(node.fetch(2, max_records=2)) == {0: [(0, 0, 2), (2, 2, 1)]}
    assert len(reads) == 1 and reads[0] <= FIRST_READ_BYTES < node.partition.log.size


def test_the_first_fetch_is_answered_with_the_first_partition_that_is_loaded(node):
    """Apache Kafka returns the rest in the second fetch, and clients' tests expect two batches."""
    node.produce(50)
    node.produce(50, partition=1)
    assert acquired(node.fetch(0, 0, 1)) == {0: [(0, 49, 1)]}
    assert acquired(node.fetch(1)) == {1: [(0, 49, 1)]}


def test_the_first_fetch_takes_in_partitions_until_they_are_enough(node):
    node.produce(50, partition=1)
    assert acquired(node.fetch(0, 0, 1)) == {0: [], 1: [(0, 49, 1)]}


def test_partitions_that_are_loaded_already_come_before_those_that_are_not(node):
    node.produce(1)
    node.produce(1, partition=1)
    assert acquired(node.fetch(0, 1)) == {1: [(0, 0, 1)]}
    node.produce(1, partition=1)
    assert acquired(node.fetch(0, 0, 1, member="ben")) == {1: [(1, 1, 1)]}
    assert acquired(node.fetch(1, member="ben")) == {0: [(0, 0, 1)]}


def test_the_first_fetch_may_ask_for_more_than_one_partition_has(node):
    node.produce(1)
    node.produce(1, partition=1)
    assert acquired(node.fetch(0, 0, 1, min_bytes=100)) == {0: [(0, 0, 1)], 1: [(0, 0, 1)]}


def test_nothing_is_read_for_who_has_enough(node, reads):
    node.fetch(0, 0, 1, max_wait_ms=0)
    node.produce(2)
    node.produce(2, partition=1)
    assert acquired(node.fetch(1, max_records=2)) == {1: [(0, 1, 1)]}
    assert len(reads) == 1


def test_a_large_batch_behind_another_partition_s_is_read(node):
    node.fetch(0, 0, 1, max_wait_ms=0)
    node.produce(1)
    node.produce(10_000, partition=1)
    answer = node.fetch(1, max_records=20_000, batch_size=20_000)
    assert acquired(answer) == {0: [(0, 0, 1)], 1: [(0, 9999, 1)]}
    (large,) = (each for each in answer.responses[0].partitions if each.partition_index == 1)
    assert len(large.records) > FIRST_READ_BYTES


def test_a_group_may_begin_beyond_the_end(node):
    """As in Apache Kafka it is not an error, or Java's members would stop."""
    node.initialize("g", start_offset=3, state_epoch=1)
    node.produce(2)
    assert errors(node.fetch(0, 0, max_wait_ms=0)) == {0: (0, 0)}
    promise = node.fetching(1)
    node.produce(2)
    node.clock.advance(0)
    assert acquired(node.answer(promise)) == {0: [(3, 3, 1)]}


@pytest.mark.parametrize("waits", [False, True])
def test_a_fetch_that_is_answered_is_kept_by_nobody(node, waits):
    """It may hold megabytes, and garbage collections of cycles are rare."""
    gc.collect()
    gc.disable()
    try:
        if not waits:
            node.produce(2)
        promise = node.fetching(0, 0)
        if waits:
            node.produce(2)
            node.clock.advance(0)
        assert acquired(node.answer(promise)) == {0: [(0, 1, 1)]}
        del promise
        assert [each for each in gc.get_objects() if isinstance(each, Answering | ShareFetching)] == []
    finally:
        gc.enable()


# ---------------------------------------------------------------- waiting


def test_a_fetch_waits_until_something_is_produced(node):
    promise = node.fetching(0, 0)
    node.clock.advance(0.3)
    assert promise.response is None
    node.produce(2)
    node.clock.advance(0)
    assert acquired(node.answer(promise)) == {0: [(0, 1, 1)]}


def test_a_fetch_waits_no_longer_than_it_wants_to(node):
    promise = node.fetching(0, 0)
    node.clock.advance(0.499)
    assert promise.response is None
    node.clock.advance(0.002)
    assert acquired(node.answer(promise)) == {0: []}
    assert not node.partition._watchers


def test_a_fetch_waits_for_enough_bytes(node):
    promise = node.fetching(0, 0, min_bytes=200)
    node.produce(1)
    node.clock.advance(0)
    assert promise.response is None
    node.produce(1, 1)
    node.clock.advance(0)
    assert acquired(node.answer(promise)) == {0: [(0, 2, 1)]}


def test_what_another_member_releases_wakes_a_fetch(node):
    node.produce(2)
    node.fetch(0, 0)
    promise = node.fetching(0, 0, member="ben", connection=2)
    node.clock.advance(0.1)
    assert promise.response is None
    node.acknowledge(1, (0, 0, 1, [RELEASE]))
    node.clock.advance(0)
    assert acquired(node.answer(promise)) == {0: [(0, 1, 2)]}


def test_a_lock_that_ends_wakes_a_fetch(node):
    node.configure(share_record_lock_duration_ms="20000")
    node.produce(2)
    assert node.fetch(0, 0).acquisition_lock_timeout_ms == 20_000
    promise = node.fetching(0, 0, member="ben", connection=2, max_wait_ms=60_000)
    node.clock.advance(19.9)
    assert promise.response is None
    node.clock.advance(0.2)
    assert acquired(node.answer(promise)) == {0: [(0, 1, 2)]}
    assert node.acknowledge(1, (0, 0, 1, [ACCEPT])) == {0: InvalidRecordState.code}


def test_room_that_is_made_wakes_a_fetch(node):
    node.configure(share_partition_max_record_locks="100")
    node.produce(100, 1)
    assert acquired(node.fetch(0, 0)) == {0: [(0, 99, 1)]}
    promise = node.fetching(0, 0, member="ben", connection=2)
    assert promise.response is None
    node.acknowledge(1, (0, 0, 9, [ACCEPT]))
    node.clock.advance(0)
    assert acquired(node.answer(promise)) == {0: [(100, 100, 1)]}


def test_who_hangs_up_is_not_waited_for(node):
    promise = node.fetching(0, 0)
    assert node.partition._watchers
    promise.cancel()
    assert not node.partition._watchers
    node.produce(1)
    node.clock.advance(1)
    assert acquired(node.fetch(0, 0, member="ben", connection=2)) == {0: [(0, 0, 1)]}


def test_who_hangs_up_while_it_is_written_what_it_said_is_given_nothing(node, monkeypatch):
    node.produce(1, 1)
    node.fetch(0, 0, max_records=1)
    held = []
    monkeypatch.setattr(node.broker.persister, "write", lambda *args: held.append(args))
    promise = node.fetching(1, said=[(0, 0, 0, [ACCEPT])])
    promise.cancel()
    monkeypatch.undo()
    for args in held:
        node.broker.persister.write(*args)
    assert acquired(node.fetch(0, 0, member="ben", connection=2)) == {0: [(1, 1, 1)]}


def test_a_write_that_is_under_way_keeps_the_share_partition_when_its_last_member_hangs_up(node, monkeypatch):
    """What a new member is given knows of it; when it is written and nobody is there, the state is read again."""
    node.produce(2)
    shares, key = node.broker.share_partitions, ("g", (node.topic_id, 0))
    node.fetch(0, 0)
    before = shares.find(*key)
    held = []
    monkeypatch.setattr(node.broker.persister, "write", lambda *args: held.append(args))
    node.fetching(1, said=[(0, 0, 0, [ACCEPT])]).cancel()
    shares.disconnected(1)
    assert shares.find(*key) is before
    assert acquired(node.fetch(0, 0, member="ben", connection=2, max_wait_ms=0)) == {0: []}
    shares.disconnected(2)
    monkeypatch.undo()
    for args in held:
        node.broker.persister.write(*args)
    assert shares.find(*key) is None
    assert acquired(node.fetch(0, 0, member="cid", connection=3)) == {0: [(1, 1, 2)]}


def test_a_topic_that_goes_ends_the_wait(node):
    promise, topic_id = node.fetching(0, 0), node.topic_id
    submitted(node.broker.controller, DeleteTopics([(None, topic_id)]))
    node.clock.advance(0)
    assert errors(node.answer(promise)) == {0: (UnknownTopicOrPartition.code, 0)}
    assert errors(node.fetch(1, topic_id=topic_id)) == {0: (UnknownTopicId.code, 0)}


def test_a_topic_that_there_is_not_spoils_nothing(node):
    """Apache Kafka 4.3.1 always fails the whole fetch with UNKNOWN_SERVER_ERROR."""
    node.produce(1)
    unknown = node.fetch(0, 0, topic_id=b"\5" * 16)
    assert errors(unknown) == {0: (UnknownTopicId.code, 0)}
    assert acquired(node.fetch(1, 0)) == {0: [(0, 0, 1)]}


# ---------------------------------------------------------------- sessions


def test_there_are_only_so_many_sessions():
    node = ShareNode(**{"group.share.max.share.sessions": "1", "group.share.max.size": "1"})
    node.produce(1)
    node.fetch(0, 0)
    promise = node.fetching(0, 0, member="ben", connection=2)
    assert promise.response is None, "it would ask again at once"
    node.clock.advance(0.5)
    assert node.answer(promise).error_code == ShareSessionLimitReached.code
    assert node.fetch(0, 0, max_wait_ms=0).error_code == 0, "anna's new session takes the place of her old one"
    node.fetch(-1)
    assert node.fetch(0, 0, member="ben", connection=2).error_code == 0


def test_a_connection_that_ends_gives_back_what_was_acquired_on_it(node):
    node.produce(2)
    node.fetch(0, 0)
    promise = node.fetching(0, 0, member="ben", connection=2)
    node.contexts[1].session.close()
    node.clock.advance(0)
    assert acquired(node.answer(promise)) == {0: [(0, 1, 2)]}
    assert node.fetch(1).error_code == ShareSessionNotFound.code


def test_a_session_that_moved_to_another_connection_outlives_the_first(node):
    node.produce(2)
    node.fetch(0, 0)
    node.fetching(0, 0, connection=2).cancel()
    node.contexts[1].session.close()
    assert node.acknowledge(1, (0, 0, 1, [ACCEPT]), connection=2) == {0: 0}


def test_with_the_last_member_goes_what_is_known_of_a_group(node):
    node.produce(1)
    node.fetch(0, 0)
    node.fetching(0, 0, member="ben", connection=2).cancel()
    at = (node.topic_id, 0)
    node.contexts[1].session.close()
    assert node.broker.share_partitions.find("g", at) is not None
    node.contexts[2].session.close()
    assert node.broker.share_partitions.find("g", at) is None
    assert len(node.broker.share_partitions.sessions) == 0


def test_sessions_that_were_closed_leave_nothing_behind(node):
    """A connection may open and close any number of sessions, of existing and unknown groups."""
    shares = node.broker.share_partitions
    for number in range(MAX_CACHED_LIMITS + 2):
        group = f"nobody-{number}"
        node.fetch(0, 0, group_id=group, max_wait_ms=0)
        assert node.fetch(-1, group_id=group).error_code == 0
    assert shares.sessions.disconnected(1) == []
    assert len(shares._group_limits) <= MAX_CACHED_LIMITS


def test_epochs_come_one_after_the_other(node):
    node.produce(1)
    node.fetch(0, 0)
    assert node.fetch(2).error_code == InvalidShareSessionEpoch.code
    session = node.broker.share_partitions.sessions._sessions["g", "anna"]
    session.epoch = 2**31 - 1
    assert node.fetching(2**31 - 1, max_wait_ms=0).response.error_code == 0
    assert session.epoch == 1


@pytest.mark.parametrize("fields", [{"group_id": None}, {"member": None}, {"member": ""}, {"member": "m" * 37}])
def test_it_has_to_say_whose_session_it_is(node, fields):
    assert node.fetch(0, 0, **fields).error_code == InvalidRequest.code


def test_an_invalid_mode_costs_an_epoch(node):
    node.produce(1)
    assert node.fetch(0, 0, share_acquire_mode=2).error_code == UnknownServerError.code
    assert acquired(node.fetch(1)) == {0: [(0, 0, 1)]}


def test_without_the_feature_there_are_no_share_groups(node):
    node.produce(1)
    node.fetch(0, 0)
    submitted(node.broker.controller, UpdateFeatures([FeatureUpdate("share.version", 0, SAFE_DOWNGRADE)]))
    assert len(node.broker.share_partitions.sessions) == 0
    assert node.fetch(0, 0).error_code == UnsupportedVersion.code


def test_partitions_take_turns(node):
    node.produce(1, 1, 1)
    node.produce(1, 1, 1, partition=1)
    first = acquired(node.fetch(0, 0, 1, max_bytes=1))
    second = acquired(node.fetch(1, max_bytes=1))
    assert sorted(index for answer in (first, second) for index, each in answer.items() if each) == [0, 1]


# ---------------------------------------------------------------- what is acknowledged


def test_what_is_said_along_with_a_fetch_comes_first(node):
    node.produce(2)
    node.fetch(0, 0)
    answer = node.fetch(1, said=[(0, 0, 1, [RELEASE])])
    assert (acquired(answer), errors(answer)) == ({0: [(0, 1, 2)]}, {0: (0, 0)})
    answer = node.fetch(2, said=[(0, 5, 5, [ACCEPT])], max_wait_ms=0)
    assert errors(answer) == {0: (0, InvalidRequest.code)}


def test_more_time_is_given_on_request(node):
    node.produce(2)
    node.fetch(0, 0)
    node.clock.advance(29)
    assert node.acknowledge(1, (0, 0, 1, [RENEW]), is_renewal=True) == {0: 0}
    node.clock.advance(29)
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}
    assert errors(node.fetch(2, said=[(0, 0, 1, [RENEW, REJECT])], **nothing)) == {0: (0, 0)}
    node.clock.advance(29)
    assert node.acknowledge(3, (0, 0, 0, [ACCEPT])) == {0: 0}
    assert node.fetch(4, **(nothing | {"max_records": 1})).error_code == InvalidRequest.code


def test_shapes():
    class AcknowledgementBatch:
        def __init__(self, first, last, *types):
            self.first_offset, self.last_offset, self.acknowledge_types = first, last, types

    assert are_valid([AcknowledgementBatch(0, 4, 1), AcknowledgementBatch(4, 6, 1, 2, 3)], is_renewal=False)
    assert are_valid([AcknowledgementBatch(0, 1, 4, 1)], is_renewal=True)
    for wrong in (
        [AcknowledgementBatch(1, 0, 1)],
        [AcknowledgementBatch(0, 1)],
        [AcknowledgementBatch(0, 1, 1, 1, 1)],
        [AcknowledgementBatch(0, 0, 4)],
        [AcknowledgementBatch(0, 3, 1), AcknowledgementBatch(2, 4, 1)],
    ):
        assert not are_valid(wrong, is_renewal=False)


# ---------------------------------------------------------------- transactions


def transactional(node, producer_id, count):
    data = build_batch(
        [(None, b"v", node.clock.time_ms())] * count,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    node.partition.append(RecordBatch.parse(data), node.clock.time_ms())


def end(node, producer_id, *, commits):
    """Appends the marker of a transaction."""
    value = b"\0\0\0\0\0\0"
    data = build_batch(
        [(b"\0\0" + (b"\0\1" if commits else b"\0\0"), value, node.clock.time_ms())],
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    node.partition.append(RecordBatch.parse(data), node.clock.time_ms(), by_coordinator=True)


def test_who_reads_what_is_committed_sees_nothing_else(node):
    node.configure(share_isolation_level="read_committed")
    transactional(node, 7, 2)
    promise = node.fetching(0, 0)
    node.clock.advance(0)
    assert promise.response is None
    end(node, 7, commits=False)
    transactional(node, 8, 1)
    end(node, 8, commits=True)
    node.clock.advance(0)
    # Markers are acquired, and members acknowledge them as gaps.
    assert acquired(node.answer(promise)) == {0: [(2, 4, 1)]}


def test_who_reads_everything_sees_it_at_once(node):
    transactional(node, 7, 2)
    assert acquired(node.fetch(0, 0)) == {0: [(0, 1, 1)]}


# ---------------------------------------------------------------- where a group begins


@pytest.mark.parametrize(
    ("reset", "first"), [("earliest", 0), ("latest", 4), ("by_duration:PT10S", 2), ("by_duration:P1D", 0)]
)
def test_a_group_that_never_read_begins_where_its_config_says(node, reset, first):
    node.configure(share_auto_offset_reset=reset)
    node.produce(2)
    node.clock.advance(20)
    node.produce(2)
    node.initialize("g", -1, state_epoch=1)
    promise = node.fetching(0, 0)
    node.produce(1)
    node.clock.advance(0)
    assert acquired(node.answer(promise))[0][0][0] == first


# ---------------------------------------------------------------- what outlives a broker


def test_what_is_done_with_stays_so_and_the_rest_is_given_again(node):
    node.produce(3, 3, 3)
    node.fetch(0, 0)
    node.acknowledge(1, (0, 0, 1, [ACCEPT]), (0, 4, 4, [REJECT]), (0, 6, 6, [RELEASE]))
    node.broker.log_manager.close(-1)  # as after a kill
    again = ShareNode.on(opened(node.broker.config, node.files, node.clock), node.clock)
    assert acquired(again.fetch(0, 0)) == {0: [(2, 3, 1), (5, 5, 1), (6, 6, 2), (7, 8, 1)]}


def test_who_is_fenced_begins_anew(node):
    node.produce(2, 2)
    node.fetch(0, 0)
    results = []
    key = SharePartitionKey("g", node.topic_id, 0)
    node.broker.share_state.initialize(key, 9, 1, results.append)  # as the group coordinator of another broker does
    assert node.acknowledge(1, (0, 0, 3, [ACCEPT])) == {0: NotLeaderOrFollower.code}
    assert acquired(node.fetch(2)) == {0: [(1, 3, 1)]}


def test_offsets_that_are_altered_hold_for_who_is_still_connected(node):
    node.produce(2, 2)
    node.fetch(0, 0)
    node.acknowledge(1, (0, 0, 3, [ACCEPT]))
    node.fetch(-1)
    node.initialize("g", 1, state_epoch=0)
    assert acquired(node.fetch(0, 0)) == {0: [(1, 3, 1)]}


def test_a_broker_that_is_reset_knows_nobody(node):
    node.produce(1)
    node.fetch(0, 0)
    topic_id = node.topic_id
    reset_to_start(node.broker)
    assert node.fetch(1, topic_id=topic_id).error_code == ShareSessionNotFound.code
    assert len(node.broker.share_partitions.sessions) == 0


def test_a_partition_that_was_not_read_has_nothing_to_acknowledge(node):
    node.fetch(0, 0, max_wait_ms=0)
    assert node.acknowledge(1, (1, 0, 0, [ACCEPT])) == {1: UnknownTopicOrPartition.code}
