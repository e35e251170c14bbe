"""AlterReplicaLogDirs: errors as Apache Kafka 4.3.1 returned them, and moves that are requested before the partition
exists.
"""

import pytest

from barnabas.api_handlers.alter_replica_log_dirs import alter_replica_log_dirs
from barnabas.api_handlers.describe_log_dirs import describe_log_dirs
from barnabas.cluster.controller.commands.configs import ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.replication.partition import READ_UNCOMMITTED
from barnabas.errors import (
    NONE,
    InvalidConfig,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaStorageError,
    LogDirNotFound,
    ReplicaNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.submitting import submitted

Directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
Topic = Directory.AlterReplicaLogDirTopic


@pytest.fixture
def partition(node):
    """A partition in /a, with a record."""
    made = node.create_topic("T", partitions=2)
    node.append(made, 1000)
    assert directory_of(node, "T", 0) == "/a"
    return made


def ask(node, *wishes, version=2):
    """Returns error codes by topic and partition, in the response's order; a wish is a path, a topic and partitions."""
    dirs = [
        Directory(path=path, topics=[Topic(name=topic, partitions=list(indexes))]) for path, topic, *indexes in wishes
    ]
    answer = node.ask(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=dirs), version)
    return {
        (result.topic_name, entry.partition_index): entry.error_code
        for result in answer.results
        for entry in result.partitions
    }


def directory_of(node, topic, index):
    manager = node.broker.log_manager
    return manager.logs[topic, index].log_directory.path


def in_metadata(node, topic, index):
    """Returns the path of the partition's directory in the metadata."""
    (directory_id,) = node.broker.image.topics_by_name[topic].partitions[index].directories
    (path,) = [each.path for each in node.broker.log_manager.directories if each.directory_id == directory_id]
    return path


@pytest.mark.parametrize("version", [0, 1, 2])
def test_it_moves(node, partition, version):
    assert ask(node, ("/b", "T", 0), version=version) == {("T", 0): NONE}
    assert directory_of(node, "T", 0) == "/a"
    node.clock.advance(0)
    assert directory_of(node, "T", 0) == in_metadata(node, "T", 0) == "/b"
    assert node.append(partition, 2000).base_offset == 1
    assert partition.log.directory == "/b/T-0"


def test_the_metadata_knows_where_partitions_are(node):
    node.create_topic("T", partitions=4)
    assert [in_metadata(node, "T", index) for index in range(4)] == ["/a", "/b", "/a", "/b"]
    assert [directory_of(node, "T", index) for index in range(4)] == ["/a", "/b", "/a", "/b"]


def test_both_are_described_meanwhile(node, partition):
    ask(node, ("/b", "T", 0))
    manager = node.broker.log_manager
    future = manager.registry.future_logs_in(manager.directories[1])["T", 0]
    described = node.ask(describe_log_dirs, DescribeLogDirsRequest(topics=None), 5)
    found = {
        (result.log_dir, each.partition_index): (each.partition_size, each.offset_lag, each.is_future_key)
        for result in described.results
        for topic in result.topics
        for each in topic.partitions
    }
    assert found == {
        ("/a", 0): (partition.log.size, 0, False),
        ("/b", 1): (0, 0, False),
        ("/b", 0): (future.size, 1, True),
    }


def test_where_it_is_already(node, partition):
    assert ask(node, ("/a", "T", 0)) == {("T", 0): NONE}
    assert not node.broker.log_manager.moves.under_way


def test_called_off(node, partition):
    ask(node, ("/b", "T", 0))
    assert ask(node, ("/a", "T", 0)) == {("T", 0): NONE}
    node.clock.advance(0)
    assert directory_of(node, "T", 0) == in_metadata(node, "T", 0) == "/a"


@pytest.mark.parametrize("path", ["/c", "/b/", "/a/../b", "b", ""])
def test_a_directory_has_one_name(node, partition, path):
    assert ask(node, (path, "T", 0)) == {("T", 0): LogDirNotFound.code}
    assert ask(node, (path, "nope", 0)) == {("nope", 0): LogDirNotFound.code}


@pytest.mark.parametrize(("topic", "index"), [("T", 7), ("T", -1), ("nope", 0), ("a b", 0), ("__cluster_metadata", 0)])
def test_what_is_not_there(node, partition, topic, index):
    assert ask(node, ("/b", topic, index)) == {(topic, index): UnknownTopicOrPartition.code}


def test_a_wish_for_what_is_not_there_is_remembered(node):
    ask(node, ("/b", "T", 0, 1, 2))
    node.create_topic("T", partitions=4)
    assert [directory_of(node, "T", index) for index in range(4)] == ["/b", "/b", "/b", "/a"]
    assert [in_metadata(node, "T", index) for index in range(4)] == ["/b", "/b", "/b", "/a"]


def test_somebody_elses_partition(node, partition, monkeypatch):
    monkeypatch.setattr(type(node.broker), "partition", raise_not_ours)
    assert ask(node, ("/b", "T", 0)) == {("T", 0): ReplicaNotAvailable.code}


def raise_not_ours(broker, topic, index):
    from barnabas.errors import NotLeaderOrFollower

    raise NotLeaderOrFollower


def test_names_that_are_too_long_to_be_moved(node):
    just, over = "x" * 213, "x" * 214
    assert ask(node, ("/b", just, 0), ("/b", over, 0)) == {
        (just, 0): UnknownTopicOrPartition.code,
        (over, 0): InvalidTopicException.code,
    }


def test_the_later_of_two_wishes_stands(node, partition):
    assert ask(node, ("/a", "T", 0), ("/b", "T", 0)) == {("T", 0): NONE}
    assert ("T", 0) in node.broker.log_manager.moves.under_way


def test_nothing(node):
    assert ask(node) == {}


def test_the_target_is_offline(node, partition):
    manager = node.broker.log_manager
    manager.directory_failed(manager.directories[1], OSError(5, "broken"))
    assert ask(node, ("/b", "T", 0), ("/a", "T", 1)) == {
        ("T", 0): KafkaStorageError.code,
        ("T", 1): KafkaStorageError.code,
    }
    assert ask(node, ("/a", "T", 0)) == {("T", 0): NONE}


def test_a_deleted_topic_takes_its_future_log_along(node, partition):
    ask(node, ("/b", "T", 0))
    submitted(node.broker.controller, DeleteTopics([("T", bytes(16))]))
    node.clock.advance(100)
    assert [name for path in ("/a", "/b") for name in node.files.list(path) if name.startswith("T-")] == []


def test_no_faster_than_the_config_allows(node, partition):
    rate = ConfigChange("replica.alter.log.dirs.io.max.bytes.per.second", 0, "0")
    (altered,) = submitted(node.broker.controller, IncrementalAlterConfigs([(ConfigResource(4, "1"), [rate])]))
    assert altered.error is None
    ask(node, ("/b", "T", 0))
    node.clock.advance(100)
    assert directory_of(node, "T", 0) == "/a"
    rate = ConfigChange("replica.alter.log.dirs.io.max.bytes.per.second", 1, None)
    submitted(node.broker.controller, IncrementalAlterConfigs([(ConfigResource(4, "1"), [rate])]))
    node.clock.advance(2)
    assert directory_of(node, "T", 0) == "/b"


def test_a_consumer_that_waits_notices_nothing(node, partition):
    woken = []
    partition.watch(woken.append, READ_UNCOMMITTED)
    ask(node, ("/b", "T", 0))
    node.clock.advance(0)
    assert woken == []
    node.append(partition, 2000)
    assert len(woken) == 1
    assert woken[0] > 0


def test_leader_epochs_stay(node, partition):
    before = partition.log.end_offset_for_epoch(partition.leader_epoch)
    ask(node, ("/b", "T", 0))
    node.clock.advance(0)
    assert partition.log.end_offset_for_epoch(partition.leader_epoch) == before


def cordon(node, *paths):
    """Cordons directories; returns the error, if any."""
    change = ConfigChange("cordoned.log.dirs", 0, ",".join(paths))
    (altered,) = submitted(node.broker.controller, IncrementalAlterConfigs([(ConfigResource(4, "1"), [change])]))
    return altered.error


def cordoned(node):
    """Returns the cordoned directories of DescribeLogDirs and of the metadata."""
    described = node.ask(describe_log_dirs, DescribeLogDirsRequest(topics=None), 5)
    found = {result.log_dir for result in described.results if result.is_cordoned}
    directories = {each.directory_id: each.path for each in node.broker.log_manager.directories}
    assert {directories[each] for each in node.broker.image.brokers[1].cordoned_log_dirs or ()} == found
    return found


def test_cordoned_directories_get_nothing_new(node, partition):
    assert cordoned(node) == set()
    assert cordon(node, "/b") is None
    assert cordoned(node) == {"/b"}
    node.create_topic("U", partitions=4)
    assert {directory_of(node, "U", index) for index in range(4)} == {"/a"}
    codes = ask(node, ("/b", "T", 0, 1), ("/b", "nope", 0), ("/nope", "V", 0))
    refused = InvalidReplicaAssignment.code
    assert codes == {("T", 0): refused, ("T", 1): refused, ("nope", 0): refused, ("V", 0): LogDirNotFound.code}
    assert directory_of(node, "T", 1) == "/b", "what is there stays"
    assert cordon(node) is None
    assert cordoned(node) == set()
    assert ask(node, ("/b", "T", 0)) == {("T", 0): NONE}


@pytest.mark.parametrize("paths", [["/a", "/b"], ["*"]])
def test_with_all_directories_cordoned_there_are_no_new_topics(node, partition, paths):
    assert cordon(node, *paths) is None
    assert cordoned(node) == {"/a", "/b"}
    with pytest.raises(InvalidReplicationFactor):
        node.create_topic("U")


@pytest.mark.parametrize("path", ["/nope", "b", "/b/"])
def test_only_directories_can_be_cordoned(node, path):
    assert isinstance(cordon(node, path), InvalidRequest | InvalidConfig)


def test_cordoned_from_the_start(quiet_node):
    node = quiet_node(**{"cordoned.log.dirs": "/a"})
    assert cordoned(node) == {"/a"}
    node.create_topic("T", partitions=3)
    assert {directory_of(node, "T", index) for index in range(3)} == {"/b"}


def test_committed_offsets_move_too(group_node):
    assert group_node.commit(p0=7).topics[0].partitions[0].error_code == NONE
    partitions = {key: log for key, log in group_node.broker.log_manager.logs.items() if key[0] == "__consumer_offsets"}
    before = {key: log.log_end_offset for key, log in partitions.items()}
    assert sum(before.values()) == 1
    paths = {key: directory_of(group_node, *key) for key in partitions}
    elsewhere = {"/a": "/b", "/b": "/a"}
    ask(group_node, *((elsewhere[path], *key) for key, path in paths.items()))
    group_node.clock.advance(1)
    assert {key: directory_of(group_node, *key) for key in partitions} == {
        key: elsewhere[path] for key, path in paths.items()
    }
    assert group_node.commit(p0=8).topics[0].partitions[0].error_code == NONE
    after = {key: group_node.broker.log_manager.logs[key].log_end_offset for key in partitions}
    assert sum(after.values()) == 2
