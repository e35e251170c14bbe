"""The requests of a fetcher, and its handling of responses. The leader is a fake."""

import pytest

from barnabas.cluster.replication.fetcher import Fetcher, FetchSettings
from barnabas.cluster.replication.throttle import ReplicationThrottle
from barnabas.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InconsistentTopicId,
    InvalidFetchSessionEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from tests.cluster.replication.followers import FOLLOWER, TOPIC_ID, batch, become, new_partition

SETTINGS = FetchSettings(max_wait_ms=500, min_bytes=1, max_bytes=1000, partition_max_bytes=100, backoff_s=1.0)
Topic = FetchResponse.FetchableTopicResponse
LATEST, EARLIEST = -1, -2


class World:
    """A fetcher with partitions 0 to ``count`` - 1, all to be fetched in epoch 3."""

    def __init__(self, count=1, limit=None, **options):
        self.limit = limit
        self.now = 0.0
        self.fetcher = Fetcher(FOLLOWER, lambda: 77, lambda: SETTINGS, ReplicationThrottle(lambda: self.limit))
        self.partitions = [new_partition(FOLLOWER, 3, index) for index in range(count)]
        for partition in self.partitions:
            self.fetcher.add(partition, **options)

    @property
    def log(self):
        return self.partitions[0].log

    def request(self):
        """Returns the next request, decoded from its bytes."""
        request = self.fetcher.next_request(self.now, int(self.now * 1000))
        if request is None:
            return None
        version = type(request).versions.last
        return type(request).decode(request.encode(version=version), version=version)

    def fetch(self):
        """Returns the fetched partitions of the next request, and the forgotten ones."""
        request = self.request()
        assert isinstance(request, FetchRequest)
        fetched = {each.partition: each for topic in request.topics for each in topic.partitions}
        return fetched, [index for topic in request.forgotten_topics_data for index in topic.partitions]

    def answer(self, *partitions, error=0, session=9, work=True):
        topics = [Topic(topic_id=TOPIC_ID, partitions=list(partitions))] if partitions else []
        response = FetchResponse(error_code=error, session_id=session, responses=topics)
        self.answered(FetchResponse.decode(response.encode(version=18), version=18))
        if work:
            self.work()

    def answered(self, response):
        self.fetcher.answered(response, self.now, int(self.now * 1000))

    def work(self, max_bytes=1 << 20):
        return self.fetcher.work(max_bytes, self.now, int(self.now * 1000))

    def exchange(self, *partitions, **options):
        request = self.fetch()
        self.answer(*partitions, **options)
        return request


def data(records=b"", *, index=0, high_watermark=0, start=0, error=None, diverging=None):
    made = Topic.PartitionData(
        partition_index=index,
        error_code=error.code if error is not None else 0,
        high_watermark=high_watermark,
        log_start_offset=start,
        records=records,
    )
    if diverging is not None:
        made.diverging_epoch = Topic.PartitionData.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    return made


def offsets(offset, *, index=0, error=None):
    answer = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        partition_index=index, offset=offset, error_code=error.code if error is not None else 0
    )
    return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[answer])])


# ------------------------------------------------------------ requests and sessions


def test_the_first_request_names_everything():
    world = World(2)
    request = world.request()
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (FOLLOWER, 77)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 1000)
    assert (request.session_id, request.session_epoch) == (0, 0)
    (topic,) = request.topics
    assert topic.topic_id == TOPIC_ID
    assert [(each.partition, each.fetch_offset) for each in topic.partitions] == [(0, 0), (1, 0)]
    first = topic.partitions[0]
    assert (first.current_leader_epoch, first.last_fetched_epoch, first.log_start_offset) == (3, -1, 0)
    assert first.partition_max_bytes == 100


def test_later_requests_name_what_has_changed():
    world = World(3)
    world.exchange(data(), data(index=1), data(index=2))
    request = world.request()
    assert (request.session_id, request.session_epoch, request.topics) == (9, 1, [])
    world.answer(data(batch(b"a", b"b", epoch=2), index=1, high_watermark=1))
    request = world.request()
    assert (request.session_id, request.session_epoch) == (9, 2)
    ((each,),) = [topic.partitions for topic in request.topics]
    assert (each.partition, each.fetch_offset, each.last_fetched_epoch) == (1, 2, 2)
    assert world.partitions[1].log.high_watermark == 1


def test_partitions_come_and_go():
    world = World(2)
    world.exchange(data(), data(index=1))
    world.fetcher.remove((TOPIC_ID, 0))
    world.fetcher.add(new_partition(FOLLOWER, 3, 7))
    fetched, forgotten = world.fetch()
    assert (list(fetched), forgotten) == ([7], [0])
    world.answer()
    assert world.fetch() == ({}, [])


def test_a_partition_that_was_removed_before_it_was_sent_is_not_forgotten():
    world = World(1)
    world.exchange(data())
    world.fetcher.add(new_partition(FOLLOWER, 3, 7))
    world.fetcher.remove((TOPIC_ID, 7))
    assert world.fetch() == ({}, [])


def test_without_partitions_there_is_no_request():
    world = World(1)
    world.fetcher.remove((TOPIC_ID, 0))
    assert world.request() is None
    assert world.fetcher.wakes_at() is None
    assert world.fetcher.is_empty


def test_a_leader_without_sessions_gets_all_partitions_each_time():
    world = World(2)
    for _ in range(3):
        fetched, _ = world.exchange(data(), data(index=1), session=0)
        assert list(fetched) == [0, 1]


@pytest.mark.parametrize("error", [FetchSessionIdNotFound, InvalidFetchSessionEpoch])
def test_a_lost_session_begins_anew_at_once(error):
    world = World(2)
    world.exchange(data(), data(index=1))
    world.exchange(error=error.code)
    request = world.request()
    assert (request.session_id, request.session_epoch) == (9 if error is InvalidFetchSessionEpoch else 0, 0)
    assert len(request.topics[0].partitions) == 2


def test_another_error_of_the_whole_request_makes_a_pause():
    world = World(2)
    world.exchange(data(), data(index=1))
    world.exchange(error=FetchSessionTopicIdError.code)
    assert world.request() is None
    assert world.fetcher.wakes_at() == 1.0
    world.now = 1.0
    assert len(world.fetch()[0]) == 2


def test_a_response_with_other_partitions_than_the_request():
    world = World(2)
    world.exchange(data())
    world.now = 1.0
    world.exchange(data(), data(index=1))
    world.exchange(data(index=5))
    world.now = 2.0
    request = world.request()
    assert (request.session_id, request.session_epoch) == (9, 0)


def test_no_response_makes_a_pause_and_ends_the_session():
    world = World(1)
    world.exchange(data())
    world.fetch()
    world.fetcher.failed(world.now)
    assert world.request() is None
    world.now = world.fetcher.wakes_at()
    request = world.request()
    assert (world.now, request.session_id, request.session_epoch) == (1.0, 9, 0)
    assert len(request.topics) == 1


# ------------------------------------------------------------ copying


def test_batches_are_appended():
    world = World()
    records = batch(b"a", b"b", epoch=1) + batch(b"c", epoch=3, base_offset=2)
    world.exchange(data(records, high_watermark=2))
    assert (world.log.log_end_offset, world.log.high_watermark, world.log.latest_epoch) == (3, 2, 3)
    assert world.log.leader_epochs.entries == [(1, 0), (3, 2)]
    assert bytes(world.log.read(0, 1 << 20, up_to=3, minimum_one=True)) == records


def test_a_batch_that_is_cut_off_is_fetched_again():
    world = World()
    second = batch(b"c" * 50, base_offset=2)
    for size in (1, 11, 40, len(second) - 1):
        world.log.truncate_fully_and_start_at(0)
        world.exchange(data(batch(b"a", b"b") + second[:size]))
        assert world.log.log_end_offset == 2
    fetched, _ = world.fetch()
    assert fetched == {} or fetched[0].fetch_offset == 2


def test_the_log_start_offset_of_the_leader():
    world = World()
    world.exchange(data(batch(b"a") + batch(b"b", base_offset=1), high_watermark=2))
    world.exchange(data(high_watermark=2, start=1))
    assert world.log.log_start_offset == 1
    fetched, _ = world.fetch()
    assert fetched[0].log_start_offset == 1


def test_only_so_many_bytes_are_worked_on_at_a_time():
    world = World(3)
    records = batch(b"x" * 40)
    world.fetch()
    world.answer(*(data(records, index=index) for index in range(3)), work=False)
    assert world.request() is None
    assert world.work(len(records) + 1)
    assert [each.log.log_end_offset for each in world.partitions] == [1, 1, 0]
    assert not world.work(1)
    assert [each.log.log_end_offset for each in world.partitions] == [1, 1, 1]
    assert world.request() is not None


@pytest.mark.parametrize("change", ["removed", "added again in another epoch", "truncated"])
def test_what_was_fetched_before_a_change_is_not_used(change):
    world = World()
    world.exchange(data(batch(b"a", epoch=3), high_watermark=1))
    world.fetch()
    if change == "removed":
        world.fetcher.remove((TOPIC_ID, 0))
    elif change == "truncated":
        world.log.truncate_to(0)
    else:
        become(world.partitions[0], 5)
        world.fetcher.add(world.partitions[0])
    end = world.log.log_end_offset
    world.answer(data(batch(b"b", epoch=3, base_offset=1)))
    assert world.log.log_end_offset == end
    if change != "removed":
        fetched, _ = world.fetch()
        assert fetched[0].fetch_offset == end
        assert fetched[0].current_leader_epoch == (3 if change == "truncated" else 5)


def test_a_corrupt_batch_is_fetched_again_after_a_pause(caplog):
    world = World(2)
    corrupt = bytearray(batch(b"abc"))
    corrupt[-1] ^= 1
    world.exchange(data(bytes(corrupt)), data(index=1))
    assert world.log.log_end_offset == 0
    assert "Cannot append the batches fetched for t-0 at offset 0" in caplog.text
    assert world.exchange() == ({}, [0])
    world.now = 1.0
    fetched, _ = world.exchange(data(batch(b"abc")))
    assert list(fetched) == [0]
    assert world.log.log_end_offset == 1


def test_batches_of_a_later_leader_epoch_are_left_out():
    world = World()
    world.exchange(data(batch(b"a", epoch=3) + batch(b"b", epoch=4, base_offset=1)))
    assert world.log.log_end_offset == 1
    world.exchange(data(batch(b"b", epoch=4, base_offset=1)))
    assert world.log.log_end_offset == 1
    assert world.request() is None


def test_a_disk_that_fails_ends_the_copying_of_that_partition():
    world = World(2)
    world.log.go_offline("the disk is broken")
    world.exchange(data(batch(b"a")), data(batch(b"b"), index=1))
    assert world.partitions[1].log.log_end_offset == 1
    fetched, forgotten = world.fetch()
    assert (list(fetched), forgotten) == ([1], [0])
    world.now = 10.0
    world.answer()
    assert world.fetch() == ({}, [])


def test_a_defect_ends_the_copying_of_that_partition(monkeypatch, caplog):
    world = World(2)
    monkeypatch.setattr(world.log, "producers", None)
    world.exchange(data(batch(b"a")), data(batch(b"b"), index=1))
    assert "cannot follow its leader any more" in caplog.text
    assert world.partitions[1].log.log_end_offset == 1


def test_watchers_learn_what_they_can_read():
    world = World()
    results = []
    world.partitions[0].watch(results.append, 0)
    records = batch(b"a")
    world.exchange(data(records, high_watermark=0))
    assert results == []
    world.exchange(data(high_watermark=1))
    assert results == [len(records)]


# ------------------------------------------------------------ errors of the leader


@pytest.mark.parametrize("error", [KafkaStorageError, CorruptMessage])
def test_errors_that_make_a_pause(error):
    world = World(2)
    world.exchange(data(error=error), data(index=1))
    assert world.exchange() == ({}, [0])
    world.now = 0.9
    assert world.exchange() == ({}, [])
    world.now = 1.0
    assert list(world.exchange()[0]) == [0]


@pytest.mark.parametrize(
    "error", [UnknownLeaderEpoch, NotLeaderOrFollower, UnknownTopicOrPartition, UnknownTopicId, InconsistentTopicId]
)
def test_errors_that_the_next_metadata_mends_make_a_short_pause(error):
    world = World(1)
    pauses = []
    for _ in range(9):
        world.exchange(data(error=error))
        assert world.request() is None
        pauses.append(round(world.fetcher.wakes_at() - world.now, 3))
        world.now = world.fetcher.wakes_at()
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    world.exchange(data(batch(b"a")))
    world.exchange(data(error=error))
    assert round(world.fetcher.wakes_at() - world.now, 3) == 0.01


def test_when_all_pause_there_is_no_request():
    world = World(2)
    world.exchange(data(error=KafkaStorageError), data(index=1, error=KafkaStorageError))
    assert world.request() is None
    assert world.fetcher.wakes_at() == 1.0
    world.now = 1.0
    assert world.exchange(data(batch(b"a"))) == ({}, [])  # nothing else was sent to the leader meanwhile
    assert world.log.log_end_offset == 1


def test_a_new_epoch_ends_the_pause():
    world = World(1)
    world.exchange(data(error=NotLeaderOrFollower))
    become(world.partitions[0], 4)
    world.fetcher.add(world.partitions[0])
    assert world.fetch()[0][0].current_leader_epoch == 4


def test_a_fenced_epoch_waits_for_the_metadata():
    world = World(2)
    world.exchange(data(error=FencedLeaderEpoch), data(index=1))
    assert world.exchange() == ({}, [0])
    world.now = 100.0
    assert world.exchange() == ({}, [])
    become(world.partitions[0], 4)
    world.fetcher.add(world.partitions[0])
    assert world.fetch()[0][0].current_leader_epoch == 4


# ------------------------------------------------------------ diverging logs, and offsets out of range


def test_a_diverging_log_is_truncated():
    world = World()
    world.exchange(data(batch(b"a", epoch=1) + batch(b"b", epoch=2, base_offset=1), high_watermark=1))
    world.exchange(data(diverging=(1, 1)))
    assert (world.log.log_end_offset, world.log.latest_epoch) == (1, 1)
    fetched, _ = world.fetch()
    assert (fetched[0].fetch_offset, fetched[0].last_fetched_epoch) == (1, 1)


def test_truncation_below_the_high_watermark_is_logged(caplog):
    world = World()
    world.exchange(data(batch(b"a", epoch=1) + batch(b"b", epoch=2, base_offset=1), high_watermark=2))
    world.exchange(data(diverging=(1, 1)))
    assert "below its high watermark 2" in caplog.text
    assert world.log.high_watermark == 1


def ask_for_offsets(world, timestamp, answer):
    request = world.request()
    assert isinstance(request, ListOffsetsRequest)
    assert request.replica_id == FOLLOWER
    ((each,),) = [topic.partitions for topic in request.topics]
    assert (each.timestamp, each.current_leader_epoch) == (timestamp, 3)
    world.answered(answer)


def test_a_log_that_is_longer_than_the_leaders():
    world = World()
    world.exchange(data(batch(b"a", epoch=1) + batch(b"b", epoch=1, base_offset=1)))
    world.exchange(data(error=OffsetOutOfRange))
    ask_for_offsets(world, LATEST, offsets(1))
    assert world.log.log_end_offset == 1
    assert world.fetch()[0][0].fetch_offset == 1


def test_a_log_that_ends_before_the_leaders_starts():
    world = World()
    world.exchange(data(batch(b"a", epoch=1)))
    world.exchange(data(error=OffsetOutOfRange))
    ask_for_offsets(world, LATEST, offsets(20))
    ask_for_offsets(world, EARLIEST, offsets(10))
    assert (world.log.log_start_offset, world.log.log_end_offset) == (10, 10)
    fetched, _ = world.fetch()
    assert (fetched[0].fetch_offset, fetched[0].last_fetched_epoch, fetched[0].log_start_offset) == (10, -1, 10)


def test_a_log_that_ends_within_the_leaders_after_all():
    world = World()
    world.exchange(data(batch(b"a", epoch=1)))
    world.exchange(data(error=OffsetOutOfRange))
    ask_for_offsets(world, LATEST, offsets(20))
    ask_for_offsets(world, EARLIEST, offsets(0))
    assert world.log.log_end_offset == 1
    world.exchange(data(batch(b"b", epoch=1, base_offset=1)))
    assert world.log.log_end_offset == 2


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST])
def test_a_leader_that_does_not_tell_its_offsets(timestamp):
    world = World()
    world.exchange(data(error=OffsetOutOfRange))
    if timestamp == EARLIEST:
        ask_for_offsets(world, LATEST, offsets(20))
    ask_for_offsets(world, timestamp, offsets(-1, error=NotLeaderOrFollower))
    assert world.request() is None
    world.now = 1.0
    world.exchange(data(error=OffsetOutOfRange))
    ask_for_offsets(world, LATEST, offsets(20))


def test_offsets_of_a_partition_that_was_removed_meanwhile():
    world = World(2)
    world.exchange(data(error=OffsetOutOfRange), data(index=1))
    world.request()
    world.fetcher.remove((TOPIC_ID, 0))
    world.answered(offsets(20))
    assert world.fetch() == ({}, [0])


def test_a_log_without_epochs_is_truncated_to_its_high_watermark():
    partition = new_partition(FOLLOWER, 3)
    partition.log.append_as_follower(batch(b"a", epoch=-1) + batch(b"b", epoch=-1, base_offset=1), now_ms=0)
    partition.log.maybe_set_high_watermark(1)
    World(0).fetcher.add(partition)
    assert partition.log.log_end_offset == 1


# ------------------------------------------------------------ throttles


def test_throttled_partitions_that_are_behind_wait_for_the_limit():
    world = World(2, limit=10)
    world.fetcher.set_throttled((TOPIC_ID, 0), is_throttled=True)
    records = batch(b"x" * 100)
    world.exchange(data(records, high_watermark=5), data(records, index=1, high_watermark=5))
    fetched, forgotten = world.exchange()
    assert (list(fetched), forgotten) == ([1], [0])
    world.now = 1.0
    assert world.exchange() == ({}, [])
    world.now = 100.0
    assert list(world.fetch()[0]) == [0]


def test_throttled_partitions_that_are_not_behind_are_fetched():
    world = World(1, limit=10, is_throttled=True)
    world.exchange(data(batch(b"x" * 100), high_watermark=1))
    assert list(world.fetch()[0]) == [0]


def test_no_limit_and_a_limit_of_zero():
    world = World(1, limit=None, is_throttled=True)
    world.exchange(data(batch(b"x" * 100), high_watermark=5))
    world.exchange(data(high_watermark=5))
    world.limit = 0
    assert world.request() is None
    world.now = world.fetcher.wakes_at()
    assert world.request() is None
    world.fetcher.set_throttled((TOPIC_ID, 0), is_throttled=False)
    world.now = world.fetcher.wakes_at()
    assert world.fetch() == ({}, [])
