"""DescribeLogDirs: directories, their contents, and failed ones."""

import errno

import pytest

from barnabas.api_handlers.describe_log_dirs import describe_log_dirs
from barnabas.errors import NONE, KafkaStorageError
from barnabas.log.systems import Space
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest

Topic = DescribeLogDirsRequest.DescribableLogDirTopic


@pytest.fixture
def logs(node):
    """Two topics of two partitions over two directories, with records in one partition."""
    node.append(node.create_topic("T", partitions=2), 1000, 1001)
    node.create_topic("U", partitions=2)
    return {(log.topic, log.partition): log for log in node.broker.log_manager.logs.values()}


def ask(node, topics, version=5):
    question = topics and [Topic(topic=name, partitions=list(partitions)) for name, partitions in topics]
    answer = node.ask(describe_log_dirs, DescribeLogDirsRequest(topics=question), version)
    assert answer.error_code == NONE
    return {result.log_dir: result for result in answer.results}


def found(results):
    """Returns the directory and the size of each log."""
    return {
        (topic.name, partition.partition_index): (path, partition.partition_size)
        for path, result in results.items()
        for topic in result.topics
        for partition in topic.partitions
    }


def test_all_logs_but_the_metadata(node, logs):
    results = ask(node, None)
    assert set(results) == {"/a", "/b"}
    assert found(results) == {
        key: (log.directory.rpartition("/")[0], log.size) for key, log in logs.items() if key[0] in ("T", "U")
    }
    assert found(results)["T", 0][1] > 0
    assert {path for path, _ in found(results).values()} == {"/a", "/b"}


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ([], set()),
        ([("T", [])], set()),
        ([("T", [0, 1, 5]), ("nope", [0])], {("T", 0), ("T", 1)}),
        ([("T", [0, 0]), ("U", [1]), ("T", [1])], {("T", 0), ("T", 1), ("U", 1)}),
        ([("__cluster_metadata", [0])], set()),
    ],
)
def test_only_requested_partitions(node, logs, requested, expected):
    results = ask(node, requested)
    assert set(results) == {"/a", "/b"}
    assert set(found(results)) == expected


def test_partitions_do_not_lag(node, logs):
    shown = [p for result in ask(node, None).values() for topic in result.topics for p in topic.partitions]
    assert {(partition.offset_lag, partition.is_future_key) for partition in shown} == {(0, False)}


def test_space_is_told_from_version_4_on(node, logs, monkeypatch):
    monkeypatch.setattr(node.files, "space", lambda path: Space(1000, 600 if path == "/a" else 500))
    for version in range(6):
        spaces = {path: (result.total_bytes, result.usable_bytes) for path, result in ask(node, [], version).items()}
        assert spaces == ({"/a": (1000, 600), "/b": (1000, 500)} if version >= 4 else {"/a": (-1, -1), "/b": (-1, -1)})


def test_a_failed_directory_is_described_without_its_logs(node, logs):
    manager = node.broker.log_manager
    manager.directory_failed(manager.directories[1], OSError(errno.EIO, "of a test"))
    results = ask(node, None)
    assert results["/a"].error_code == NONE
    failed = results["/b"]
    assert (failed.error_code, failed.topics, failed.total_bytes) == (KafkaStorageError.code, [], -1)


def test_a_volume_that_tells_no_space(node, logs, monkeypatch):
    def space(path):
        raise OSError(errno.EIO, "of a test")

    monkeypatch.setattr(node.files, "space", space)
    assert {result.total_bytes for result in ask(node, None).values()} == {-1}
