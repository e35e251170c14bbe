"""A process that cannot start a broker prints one line, and its exit code is not 0."""

import errno
import re
import resource
import subprocess
import sys

import pytest

from barnabas.records.builder import build_batch
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.raw import Client


@pytest.fixture
def serve(tmp_path):
    """Runs a broker on ``tmp_path`` that must fail; returns its last line and its exit code."""

    def serve(log_dirs=tmp_path, *overrides):
        command = [sys.executable, "-m", "barnabas", "serve", "--port", "0", "--log-dirs", str(log_dirs)]
        process = subprocess.run(
            [*command, *(word for override in overrides for word in ("--override", override))],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return process.stderr.strip().splitlines()[-1], process.returncode

    return serve


def test_a_metadata_log_that_cannot_be_read(tmp_path, serve):
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text("no JSON")
    line, code = serve()
    assert code == 1
    assert "Cannot start" in line
    assert "quorum-state" in line


def test_a_directory_of_another_cluster(tmp_path, serve):
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=aaaaaaaaaaaaaaaaaaaaaa\nnode.id=7\n")
    line, code = serve()
    assert code == 1
    assert "Cannot start" in line


@pytest.fixture
def start(tmp_path):
    """Starts brokers in their own processes, with a limit on the size of files that simulates a full disk."""
    processes = []

    def start(largest_file, *overrides):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        command = [sys.executable, "-m", "barnabas", "serve", "--port", "0", "--log-dirs", str(tmp_path / "data")]
        for override in overrides:
            command += ["--override", override]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=limit
        )
        processes.append(process)
        for line in process.stdout:
            if found := re.search(r"127\.0\.0\.1:([1-9]\d*)", line):
                return process, int(found[1])
        raise AssertionError("it did not start")

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def create_and_fill(port, records):
    """Returns the error codes of consecutive appends, up to the first error."""
    topic = CreateTopicsRequest.CreatableTopic(
        name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    data = ProduceRequest.TopicProduceData
    found = []
    with Client(port) as client:
        assert client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5).topics[0].error_code == 0
        for _ in range(records):
            batch = build_batch([(b"key", b"value" * 2000, 1_700_000_000_000)])
            partition = data.PartitionProduceData(index=0, records=batch)
            request = ProduceRequest(
                acks=1, timeout_ms=1000, topic_data=[data(name="orders", partition_data=[partition])]
            )
            answer = client.ask(request, 9)
            if answer is None:
                break
            found.append(answer.responses[0].partition_responses[0].error_code)
            if found[-1]:
                break
    return found


def test_a_disk_that_is_full_ends_the_process_and_a_larger_one_has_all_that_was_acknowledged(start, tmp_path):
    process, port = start(100_000)
    codes = create_and_fill(port, 20)
    taken = codes.count(0)
    assert 5 <= taken <= 9
    assert codes[-1] == 56
    said = process.stdout.read()
    assert process.wait(60) == 1
    lines = [line for line in said.splitlines() if " ERROR " in line or " CRITICAL " in line]
    assert len(lines) == 2, said
    path = tmp_path / "data" / "orders-0" / f"{0:020d}.log"
    assert f"Log directory {tmp_path / 'data'} is offline: [Errno {errno.EFBIG}]" in lines[0]
    assert str(path) in lines[0]
    assert "the last log directory" in lines[1]

    process, port = start(resource.RLIM_INFINITY)
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, timestamp=-1)
    with Client(port) as client:
        answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic(name="orders", partitions=[partition])]), 6)
    assert answer.topics[0].partitions[0].offset == taken
    process.terminate()
    assert process.wait(60) == 0


def test_a_directory_that_is_in_use(start, serve, tmp_path):
    start(resource.RLIM_INFINITY)
    (tmp_path / "data").rename(tmp_path / "moved")
    (tmp_path / "moved" / ".lock").rename(tmp_path / ".lock")
    line, code = serve()
    assert code == 1
    assert f"{tmp_path}/.lock" in line
    assert "another broker" in line


def test_directories_of_two_clusters(tmp_path, serve):
    for name, cluster in (("a", "aaaaaaaaaaaaaaaaaaaaaa"), ("b", "bbbbbbbbbbbbbbbbbbbbbb")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id=1\n")
    line, code = serve(f"{tmp_path}/a,{tmp_path}/b")
    assert code == 1
    assert f"{tmp_path}/a/meta.properties" in line
    assert f"{tmp_path}/b/meta.properties" in line
    assert "aaaaaaaaaaaaaaaaaaaaaa" in line
    assert "bbbbbbbbbbbbbbbbbbbbbb" in line


def test_a_directory_that_cannot_be_made(tmp_path, serve):
    (tmp_path / "file").touch()
    line, code = serve(tmp_path / "file")
    assert code == 1
    assert line.endswith(f"Cannot start: All log directories are offline: {tmp_path}/file")


AS_BROKER = ("process.roles=broker", "node.id=7", "controller.quorum.voters=1@127.0.0.1:1")


def test_a_broker_whose_directories_are_not_formatted(tmp_path, serve):
    line, code = serve(tmp_path, *AS_BROKER)
    assert code == 1
    assert "Cannot start: No readable meta.properties files found" in line
    assert "`barnabas storage format`" in line


def test_a_broker_whose_controllers_are_away(tmp_path, serve):
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=aaaaaaaaaaaaaaaaaaaaaa\nnode.id=7\n")
    line, code = serve(tmp_path, *AS_BROKER, "initial.broker.registration.timeout.ms=300")
    assert code == 1
    assert line.endswith("Cannot start: no controller has sent the metadata log within 300 ms")
