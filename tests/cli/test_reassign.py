"""The commands that change a cluster, from ``reassign`` to ``quorum``, with three brokers in this process."""

import io
import json
import sys

import pytest
from kafka import KafkaProducer

from barnabas.cli import main
from barnabas.testing import Cluster
from tests.cli.conftest import Outcome


@pytest.fixture(scope="module")
def cluster():
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def barnabas(cluster, capsys, monkeypatch):
    def run(command, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        code = main([command, *arguments, "--bootstrap-server", cluster.bootstrap_servers])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def file(tmp_path):
    """Writes a reassignment: replicas, and optionally log directories, by topic and partition."""

    def write(*partitions, **more):
        path = tmp_path / "reassignment.json"
        fields = ("topic", "partition", "replicas", "log_dirs")
        content = {"version": 1, "partitions": [dict(zip(fields, each, strict=False)) for each in partitions], **more}
        path.write_text(json.dumps(content))
        return str(path)

    return write


def replicas(cluster, topic, partition=0):
    return list(cluster.partition(topic, partition).replicas)


def test_a_reassignment_from_its_proposal_to_its_end(barnabas, cluster, tmp_path, file):
    cluster.create_topic("orders", partitions=2, replicas=1)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "orders"}]}))
    generated = barnabas("reassign", "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3")
    titles, contents = generated.lines[0::3], [json.loads(line) for line in generated.lines[1::3]]
    assert titles == ["Current partition replica assignment", "Proposed partition reassignment configuration"]
    now, proposed = ([each["replicas"] for each in content["partitions"]] for content in contents)
    assert now == [replicas(cluster, "orders", index) for index in range(2)]
    assert [each["log_dirs"] for each in contents[0]["partitions"]] == [["/barnabas"], ["/barnabas"]]
    assert [len(each) for each in proposed] == [1, 1]
    wanted = file(("orders", 0, [2, 3, 1]), ("orders", 1, [3, 1]))
    executed = barnabas("reassign", "--execute", "--reassignment-json-file", wanted, "--throttle", "1000000")
    assert (executed.code, executed.err) == (0, "")
    assert executed.lines[-2:] == [
        "The inter-broker throttle limit was set to 1000000 B/s",
        "Successfully started partition reassignments for orders-0,orders-1",
    ]
    verified = barnabas("reassign", "--verify", "--reassignment-json-file", wanted, "--wait")
    assert verified == (
        0,
        "Status of partition reassignment:\n"
        "Reassignment of partition orders-0 is completed.\n"
        "Reassignment of partition orders-1 is completed.\n\n"
        "Clearing broker-level throttles on brokers 1,2,3\n"
        "Clearing topic-level throttles on topic orders\n",
        "",
    )
    assert [replicas(cluster, "orders", index) for index in range(2)] == [[2, 3, 1], [3, 1]]
    assert barnabas("topics", "--describe", "--topic", "orders", "--json").json[0]["configs"] == {}


@pytest.mark.parametrize("ignores_racks", [False, True])
def test_a_proposal_spreads_replicas_over_racks(capsys, tmp_path, ignores_racks):
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "orders"}]}))
    options = ["--disable-rack-aware"] if ignores_racks else []
    with Cluster(4, racks=["a", "a", "b", "b"]) as cluster:
        cluster.create_topic("orders", partitions=40, replicas=2)
        where = ["--bootstrap-server", cluster.bootstrap_servers]
        generate = ["reassign", "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3,4"]
        code = main([*generate, *options, *where])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    proposed = [each["replicas"] for each in json.loads(said.out.splitlines()[-1])["partitions"]]
    within_a_rack = [each for each in proposed if set(each) in ({1, 2}, {3, 4})]
    assert len(proposed) == 40
    assert bool(within_a_rack) is ignores_racks


def fill(cluster, topic):
    """Writes more than a follower fetches at once, so that a throttle delays it."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, max_request_size=2_000_000)
    for _ in range(6):
        producer.send(topic, bytes(900_000)).get(10)
    producer.close()


def test_while_it_is_under_way(barnabas, cluster, file):
    cluster.create_topic("held", replicas=1)
    (only,) = replicas(cluster, "held")
    fill(cluster, "held")
    other = only % 3 + 1
    wanted = file(("held", 0, [other]))
    assert barnabas("reassign", "--execute", "--reassignment-json-file", wanted, "--throttle", "1").code == 0
    assert barnabas("reassign", "--list").lines == [
        "Current partition reassignments:",
        f"held-0: replicas: {other},{only}. adding: {other}. removing: {only}.",
    ]
    again = barnabas("reassign", "--execute", "--reassignment-json-file", wanted)
    assert again.err.startswith("Error: Cannot execute because there is an existing partition assignment. Use --")
    verified = barnabas("reassign", "--verify", "--reassignment-json-file", wanted)
    assert verified.lines[1:] == ["Reassignment of partition held-0 is still in progress.", ""]
    cancelled = barnabas("reassign", "--cancel", "--reassignment-json-file", wanted)
    assert cancelled.lines == [
        "Successfully cancelled partition reassignment for: held-0",
        "None of the specified partition moves are active.",
        "Clearing broker-level throttles on brokers 1,2,3",
        "Clearing topic-level throttles on topic held",
    ]
    assert barnabas("reassign", "--list") == (0, "No partition reassignments found.\n", "")
    verified = barnabas("reassign", "--verify", "--reassignment-json-file", wanted, "--preserve-throttles")
    assert verified.lines[1:] == [
        f"There is no active reassignment of partition held-0, but replica set is {only} rather than {other}.",
        "",
    ]


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ([], "Partition reassignment list cannot be empty"),
        ([("t", 0, [])], "Partition replica list cannot be empty"),
        ([("t", 0, [1]), ("t", 0, [2])], "Partition reassignment contains duplicate topic partitions: t-0"),
        (
            [("t", 0, [1, 1])],
            "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries for 1",
        ),
        ([("t", 0, [1], ["a", "b"])], "Size of replicas list [1] is different from size of log dirs list ['a', 'b']"),
        ([("nope", 0, [1])], "UnknownTopicOrPartition: Topic nope not found."),
        ([("t", 9, [9])], "Unknown broker id 9"),
    ],
)
def test_files_that_cannot_be(barnabas, file, partitions, said):
    refused = barnabas("reassign", "--execute", "--reassignment-json-file", file(*partitions))
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: {said}")
    assert refused.err.count("\n") == 1


def test_another_version_of_the_file(barnabas, file):
    refused = barnabas("reassign", "--verify", "--reassignment-json-file", file(version=2))
    assert refused == (1, "", "Error: Not supported version field value 2\n")


def test_a_change_of_the_replication_factor_can_be_refused(barnabas, cluster, file):
    cluster.create_topic("two", replicas=2)
    refused = barnabas(
        "reassign", "--execute", "--reassignment-json-file", file(("two", 0, [1, 2, 3])),
        "--disallow-replication-factor-change",
    )  # fmt: skip
    assert refused.code == 1
    assert refused.lines[-2:] == [
        "Error reassigning partition(s):",
        "two-0: The replication factor is changed from 2 to 3",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"),
        (["--verify"], 'Missing required argument "[reassignment-json-file]"'),
        (["--list", "--throttle", "3"], 'Option "[throttle]" can\'t be used with action "[list]"'),
    ],
)
def test_options_that_do_not_go_together(barnabas, arguments, said):
    refused = barnabas("reassign", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


def test_leader_election(barnabas, cluster, tmp_path):
    cluster.create_topic("led")
    first, second, _ = replicas(cluster, "led")
    cluster.stop(first)
    cluster.wait_until(lambda: cluster.broker(second).image.partition("led", 0).leader == second)
    cluster.start(first)
    cluster.wait_in_sync("led")
    elected = barnabas("leader-election", "--election-type", "preferred", "--topic", "led", "--partition", "0")
    assert elected == (0, "Successfully completed leader election (PREFERRED) for partitions led-0\n", "")
    file = tmp_path / "partitions.json"
    partitions = [{"topic": "led", "partition": 0}, {"topic": "led", "partition": 9}]
    file.write_text(json.dumps({"partitions": partitions}))
    again = barnabas("leader-election", "--election-type", "PREFERRED", "--path-to-json-file", str(file))
    assert again == (
        1,
        "Valid replica already elected for partitions led-0\n"
        "Error completing leader election (PREFERRED) for partition: led-9: "
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such partition as led-9\n",
        "Error: 1 replica(s) could not be elected\n",
    )
    assert barnabas("leader-election", "--election-type", "preferred", "--all-topic-partitions").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"),
        (["--topic", "t"], "Missing required option(s): partition"),
        (["--all-topic-partitions", "--partition", "1"], "Option partition is only allowed if topic is used"),
    ],
)
def test_elections_that_cannot_be(barnabas, arguments, said):
    refused = barnabas("leader-election", "--election-type", "preferred", *arguments)
    assert refused.code == 2
    assert said in refused.err


def test_brokers(barnabas, cluster):
    cluster.create_topic("counted", partitions=3, replicas=1)
    rows = barnabas("brokers", "--json").json
    assert [(row["id"], row["state"], row["address"]) for row in rows] == [
        (node, "unfenced", cluster.address(node)) for node in cluster.node_ids
    ]
    assert sum(row["leaders"] for row in rows) >= 3
    assert all(row["replicas"] >= row["leaders"] for row in rows)
    assert rows[0]["log_dirs"] == [{"log_dir": "/barnabas", "error": None}]
    assert "metadata.version" in rows[0]["features"]
    cluster.stop(3)
    try:
        table = barnabas("brokers")
        assert "fenced" in table.lines[-1].split()
        assert "4.3-IV0" in table.lines[-2]
    finally:
        cluster.start(3)


def test_troubled_partitions(barnabas, cluster):
    cluster.create_topic("troubled", configs={"min.insync.replicas": 2})
    troubled = "--under-replicated-partitions", "--under-min-isr-partitions", "--at-min-isr-partitions"

    def found(option):
        listed = barnabas("topics", option, "--topic", "troubled", "--json").json
        return bool(listed[0]["partitions"])

    assert [found(option) for option in troubled] == [False, False, False]
    cluster.stop(3)
    try:
        assert [found(option) for option in troubled] == [True, False, True]
        assert barnabas("topics", "--unavailable-partitions", "--topic", "troubled") == (0, "", "")
    finally:
        cluster.start(3)
        cluster.wait_in_sync("troubled")
    overrides = barnabas("topics", "--describe", "--topics-with-overrides", "--topic", "troubled")
    assert "configs: min.insync.replicas=2" in overrides.out
    assert "LEADER" not in overrides.out


def test_quorum(barnabas, cluster):
    status = dict(line.split(":", 1) for line in barnabas("quorum", "describe", "--status").lines)
    assert status["ClusterId"].strip() == cluster.cluster_id
    assert status["LeaderId"].strip() == "1000"
    assert [each["id"] for each in json.loads(status["CurrentVoters"])] == [1000]
    assert sorted(each["id"] for each in json.loads(status["CurrentObservers"])) == cluster.node_ids
    head, *rows = (line.split("\t") for line in barnabas("quorum", "describe", "--replication").lines)
    assert [cell.strip() for cell in head[:4]] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert [row[6].strip() for row in rows] == ["Leader", "Observer", "Observer", "Observer"]
    human = barnabas("quorum", "describe", "--replication", "--human-readable").lines[2]
    assert " ms ago" in human


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "One of --status or --replication must be specified with describe sub-command"),
        (["--status", "--replication"], "Only one of --status or --replication should be specified"),
        (["--status", "--human-readable"], "The option --human-readable is only supported along with --replication"),
    ],
)
def test_quorum_options_that_do_not_go_together(barnabas, arguments, said):
    refused = barnabas("quorum", "describe", *arguments)
    assert refused.code == 2
    assert said in refused.err


def test_the_commands_of_kafka_cluster(barnabas, cluster):
    assert barnabas("cluster", "cluster-id") == (0, f"Cluster ID: {cluster.cluster_id}\n", "")
    refused = barnabas("cluster", "unregister", "--id", "77")
    assert refused == (1, "", "Error: BrokerIdNotRegistered: Broker ID 77 is not currently registered\n")
    cluster.stop(2)
    try:
        listed = [line.split() for line in barnabas("cluster", "list-endpoints", "--include-fenced-brokers").lines]
        hidden = [line.split()[0] for line in barnabas("cluster", "list-endpoints").lines]
    finally:
        cluster.start(2)
    assert listed[0] == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert [(row[0], row[4]) for row in listed[1:]] == [("1", "unfenced"), ("2", "fenced"), ("3", "unfenced")]
    assert hidden == ["ID", "1", "3"]
