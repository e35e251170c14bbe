"""Failures of a disk under a running broker: the errors of clients, the partitions that are still served, and the state
after a restart.
"""

import contextlib
import errno
import logging
import time

import pytest

from barnabas.errors import (
    CoordinatorNotAvailable,
    CorruptMessage,
    KafkaStorageError,
    LeaderNotAvailable,
    NotController,
    NotCoordinator,
)
from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from barnabas.testing.faults import FaultyFiles
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.raw import Client

PARTITIONS = 4
STORAGE = KafkaStorageError.code

FULL = (errno.ENOSPC, "write", "create", "makedirs")
READ_ONLY = (errno.EROFS, "write", "create", "makedirs", "rename", "delete", "truncate")
BROKEN = (errno.EIO, "write", "create", "makedirs", "rename", "delete", "truncate", "fsync", "read")


class Asking:
    """One client, and a topic with partitions in both directories."""

    def __init__(self, port):
        self.client = Client(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.socket.close()

    def produce(self, index, *, topic="orders"):
        topic_data = ProduceRequest.TopicProduceData
        records = build_batch([(b"key", b"value", 1_700_000_000_000)])
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                topic_data(name=topic, partition_data=[topic_data.PartitionProduceData(index=index, records=records)])
            ],
        )
        (topic,) = self.client.ask(request, 9).responses
        return topic.partition_responses[0]

    def fetch(self, index):
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[topic(topic="orders", partitions=[partition])], forgotten_topics_data=[]
        )
        return self.client.ask(request, 11).responses[0].partitions[0]

    def list_offsets(self, index, timestamp):
        topic = ListOffsetsRequest.ListOffsetsTopic
        partition = topic.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[topic(name="orders", partitions=[partition])])
        return self.client.ask(request, 6).topics[0].partitions[0]

    def epoch_end(self, index):
        topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        partition = topic.OffsetForLeaderPartition(partition=index, leader_epoch=0)
        request = OffsetForLeaderEpochRequest(topics=[topic(topic="orders", partitions=[partition])])
        return self.client.ask(request, 4).topics[0].partitions[0]

    def delete_records(self, index):
        topic = DeleteRecordsRequest.DeleteRecordsTopic
        partition = topic.DeleteRecordsPartition(partition_index=index, offset=0)
        request = DeleteRecordsRequest(topics=[topic(name="orders", partitions=[partition])], timeout_ms=1000)
        return self.client.ask(request, 2).topics[0].partitions[0]

    def producers(self, index):
        request = DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name="orders", partition_indexes=[index])]
        )
        return self.client.ask(request, 0).topics[0].partitions[0]

    def directories(self):
        results = self.client.ask(DescribeLogDirsRequest(topics=None), 4).results
        return {
            result.log_dir: (
                result.error_code,
                sorted(each.partition_index for topic in result.topics for each in topic.partitions),
            )
            for result in results
        }

    def metadata(self, topic="orders"):
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        return {each.partition_index: each for each in self.client.ask(request, 9).topics[0].partitions}

    def ask_for(self, name, partitions):
        """Returns the response to CreateTopics, None if the connection was closed instead."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        return self.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)

    def create(self, name, partitions):
        return self.ask_for(name, partitions).topics[0].error_code

    def coordinator(self, group):
        return self.client.ask(FindCoordinatorRequest(key=group, key_type=0), 3).error_code

    def commit(self, group, offset):
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[topic(name="orders", partitions=[partition])],
        )
        return self.client.ask(request, 7).topics[0].partitions[0].error_code

    def committed(self, group):
        return self.client.ask(OffsetFetchRequest(group_id=group, topics=None), 5).error_code

    def committed_offset(self, group):
        return (
            self.client.ask(OffsetFetchRequest(group_id=group, topics=None), 5).topics[0].partitions[0].committed_offset
        )

    def errors(self, index):
        """Returns the errors of the APIs for that partition, Produce first."""
        answers = [
            self.produce(index),
            self.fetch(index),
            *(self.list_offsets(index, timestamp) for timestamp in (-1, -2, 0)),
            self.epoch_end(index),
            self.delete_records(index),
            self.producers(index),
        ]
        return [answer.error_code for answer in answers]


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("failure", [FULL, READ_ONLY, BROKEN], ids=["full", "read-only", "broken"])
def test_one_of_two_directories_fails(failure, caplog):
    files = FaultyFiles(under="/b/")
    with Broker(files=files, log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        broker.create_topic("orders", partitions=PARTITIONS)
        assert [asking.produce(index).error_code for index in range(PARTITIONS)] == [0] * PARTITIONS
        _, lost = asking.directories()["/b"]
        _, kept = asking.directories()["/a"]
        assert len(lost) == len(kept) == PARTITIONS // 2
        caplog.clear()
        files.fail_now(*failure)
        assert asking.produce(lost[0]).error_code == STORAGE

        for index in lost:
            assert asking.errors(index) == [STORAGE] * 8
        for index in kept:
            assert asking.errors(index) == [0] * 8
        until(lambda: asking.metadata()[lost[0]].leader_id == -1)
        metadata = asking.metadata()
        for index in lost:
            entry = metadata[index]
            assert (entry.error_code, entry.leader_id) == (LeaderNotAvailable.code, -1)
            assert (entry.replica_nodes, entry.isr_nodes, entry.offline_replicas) == ([1], [], [1])
            assert entry.leader_epoch == 1
        assert {(metadata[index].leader_id, metadata[index].leader_epoch) for index in kept} == {(1, 0)}
        for index in lost:
            assert asking.errors(index) == [STORAGE] * 8
        assert asking.directories() == {"/a": (0, kept), "/b": (STORAGE, [])}

        assert asking.create("payments", 3) == 0
        assert [asking.produce(index, topic="payments").error_code for index in range(3)] == [0] * 3
        (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert line.startswith("Log directory /b is offline: ")
        assert f"[Errno {failure[0]}]" in line
        assert f"/b/orders-{lost[0]}/" in line

    with Broker(files=files.survivor(), log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        metadata = asking.metadata()
        assert {(entry.error_code, entry.leader_id) for entry in metadata.values()} == {(0, 1)}
        assert all(entry.isr_nodes == [1] and not entry.offline_replicas for entry in metadata.values())
        for index in lost:
            assert asking.list_offsets(index, -1).offset == 1
        for index in range(PARTITIONS):
            assert asking.errors(index) == [0] * 8
        assert len(broker.records("payments")) == 3


def test_a_directory_fails_that_old_metadata_has_no_place_for():
    """The metadata cannot record it: the broker itself refuses its partitions until it is online again."""
    files = FaultyFiles(under="/b/")
    with (
        Broker(files=files, log_dirs="/a,/b", features={"metadata.version": 16}) as broker,
        Asking(broker.port) as asking,
    ):
        broker.create_topic("orders", partitions=PARTITIONS)
        assert [asking.produce(index).error_code for index in range(PARTITIONS)] == [0] * PARTITIONS
        _, lost = asking.directories()["/b"]
        assert len(lost) == PARTITIONS // 2
        files.fail_now(*FULL)
        assert asking.produce(lost[0]).error_code == STORAGE
        until(lambda: asking.directories()["/b"] == (STORAGE, []))
        for index in range(PARTITIONS):
            assert asking.errors(index) == [STORAGE if index in lost else 0] * 8
        assert {entry.leader_id for entry in asking.metadata().values()} == {1}
        assert asking.create("payments", 3) == 0
        assert [asking.produce(index, topic="payments").error_code for index in range(3)] == [0] * 3
    with Broker(files=files.survivor(), log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        assert asking.directories()["/b"][1] == lost
        assert [asking.errors(index) for index in range(PARTITIONS)] == [[0] * 8] * PARTITIONS


def test_a_directory_that_is_broken_at_the_start(caplog):
    """Its partitions are not served, nor created elsewhere, and are served again when the directory is online."""
    files = FaultyFiles()
    with Broker(files=files, log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        broker.create_topic("orders", partitions=PARTITIONS)
        for index in range(PARTITIONS):
            asking.produce(index)
        _, lost = asking.directories()["/b"]
    files = files.survivor()
    files.under = "/b"
    files.fail_now(*BROKEN)
    with Broker(files=files, log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        metadata = asking.metadata()
        for index in range(PARTITIONS):
            expected = (LeaderNotAvailable.code, -1, [1]) if index in lost else (0, 1, [])
            answer = metadata[index]
            assert (answer.error_code, answer.leader_id, answer.offline_replicas) == expected
            assert asking.errors(index) == [STORAGE if index in lost else 0] * 8
    with Broker(files=files.survivor(), log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        for index in range(PARTITIONS):
            assert asking.list_offsets(index, -1).offset == (1 if index in lost else 2)
            assert asking.errors(index) == [0] * 8


def test_the_directory_of_the_metadata_log_is_broken_at_the_start():
    """The other directory must not start a new metadata log."""
    files = FaultyFiles()
    with Broker(files=files, log_dirs="/a,/b") as broker:
        broker.create_topic("orders")
    files = files.survivor()
    files.under = "/a"
    files.fail_now(*BROKEN)
    with (
        pytest.raises(Exception, match=r"the metadata log may be in /a: .*Errno 5"),
        Broker(files=files, log_dirs="/a,/b"),
    ):
        pass
    with Broker(files=files.survivor(), log_dirs="/a,/b") as broker:
        assert broker.topics() == ["orders"]


@pytest.mark.parametrize(
    ("log_dirs", "reason"),
    [("/a", "the last log directory, /a, is offline"), ("/a,/b", "/a, the log directory with the metadata log")],
)
def test_without_any_directory_or_without_the_metadata_it_gives_up(log_dirs, reason):
    files = FaultyFiles(under="/a/")
    with Broker(files=files, log_dirs=log_dirs) as broker, Asking(broker.port) as asking:
        broker.create_topic("orders", partitions=2)
        reasons = []
        broker.on_fatal = reasons.append
        files.fail_now(*FULL)
        assert STORAGE in [asking.produce(index).error_code for index in range(2)]
        until(lambda: reasons)
        assert reasons[0].startswith(reason)
    with Broker(files=files.survivor(), log_dirs=log_dirs) as broker, Asking(broker.port) as asking:
        assert [asking.produce(index).error_code for index in range(2)] == [0, 0]


@pytest.mark.parametrize("checks", [False, True])
def test_a_flipped_bit_is_answered_as_corrupt_where_reads_are_checked(checks, caplog):
    files = FaultyFiles()
    with (
        Broker({"barnabas.log.read.check.crcs": checks}, files=files) as broker,
        Asking(broker.port) as asking,
    ):
        broker.create_topic("orders")
        asking.produce(0)
        path = "/barnabas/orders-0/00000000000000000000.log"
        files.open(path).content[65] ^= 1
        answers = [asking.fetch(0) for _ in range(3)]
    if checks:
        assert {(answer.error_code, len(answer.records)) for answer in answers} == {(CorruptMessage.code, 0)}
        (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert f"{path} at position 0" in line
        assert "offset 0" in line
    else:
        assert {answer.error_code for answer in answers} == {0}


def test_an_acknowledgement_that_waits_for_the_disk_is_an_error_when_it_fails():
    files = FaultyFiles(under="/b/")
    with Broker(files=files, log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        broker.create_topic("orders", partitions=PARTITIONS, configs={"flush.messages": 1})
        _, lost = asking.directories()["/b"]
        assert asking.produce(lost[0]).error_code == 0
        files.fail_now(errno.EIO, "fsync")
        answer = asking.produce(lost[0])
        assert (answer.error_code, answer.base_offset) == (STORAGE, -1)


def test_a_change_to_the_metadata_is_on_the_disk_before_it_is_answered():
    files = FaultyFiles()
    with Broker(files=files) as broker, Asking(broker.port) as asking:
        for number in range(10):
            assert asking.create(f"topic-{number}", 1) == 0
            left = files.survivor(power_cut=True)
            with Broker(files=left) as after:
                assert f"topic-{number}" in after.topics()


def test_a_change_to_the_metadata_that_does_not_reach_the_disk_is_not_answered_as_done():
    files = FaultyFiles(under="/barnabas/__cluster_metadata-0/")
    with Broker(files=files) as broker, Asking(broker.port) as asking:
        reasons = []
        broker.on_fatal = reasons.append
        files.fail_now(errno.EIO, "fsync")
        asking.client.socket.settimeout(0.5)
        # The broker stops without a response, but an error may be sent before.
        with contextlib.suppress(TimeoutError):
            answer = asking.ask_for("orders", 1)
            assert answer is None or [topic.error_code for topic in answer.topics] == [NotController.code]
        until(lambda: reasons)


def test_groups_whose_partition_is_lost_have_no_coordinator_until_it_is_back():
    files = FaultyFiles(under="/b/")
    groups = ["g0", "g1", "g2", "g3"]
    with (
        Broker(files=files, log_dirs="/a,/b", offsets_topic_num_partitions=2) as broker,
        Asking(broker.port) as asking,
    ):
        broker.create_topic("orders", partitions=2)
        assert [asking.coordinator(group) for group in groups] == [0] * 4
        assert [asking.commit(group, 0) for group in groups] == [0] * 4
        files.fail_now(*FULL)
        assert STORAGE in [asking.produce(index).error_code for index in range(2)]
        until(lambda: CoordinatorNotAvailable.code in [asking.coordinator(group) for group in groups])
        for group in groups:
            if asking.coordinator(group):
                assert (asking.commit(group, 1), asking.committed(group)) == (NotCoordinator.code, NotCoordinator.code)
            else:
                assert (asking.commit(group, 0), asking.committed(group)) == (0, 0)
    with Broker(files=files.survivor(), log_dirs="/a,/b") as broker, Asking(broker.port) as asking:
        assert [asking.committed_offset(group) for group in groups] == [0] * 4


def test_a_commit_is_on_the_disk_before_it_is_answered_where_that_is_wanted():
    files = FaultyFiles()
    with Broker(files=files, log_flush_interval_messages=1) as broker, Asking(broker.port) as asking:
        broker.create_topic("orders")
        assert asking.coordinator("readers") == 0
        for offset in range(1, 6):
            assert asking.produce(0).error_code == 0
            assert asking.commit("readers", offset) == 0
            with Broker(files=files.survivor(power_cut=True)) as after, Asking(after.port) as reader:
                assert reader.committed_offset("readers") == offset
                assert reader.list_offsets(0, -1).offset == offset
        files.fail_now(errno.EIO, "fsync")
        assert asking.commit("readers", 0) == NotCoordinator.code
