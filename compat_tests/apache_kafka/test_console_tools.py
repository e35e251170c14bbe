"""Apache Kafka's own console tools against Barnabas, and their output.

A tool must print what it prints with Apache Kafka."""

import base64
import itertools
import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as InnerConsumer
from confluent_kafka import KafkaException, Producer

from barnabas.testing import Broker

from .apache import CURRENT, PREVIOUS, ApacheKafka, KafkaUnavailable, jars, java_command

PROGRAM = Path(__file__).parent / "java" / "Tools.java"
TOOLS = "org.apache.kafka.tools"
numbers = itertools.count(1)


@pytest.fixture
def topic() -> str:
    return f"tools-{next(numbers)}"


class Tools:
    """Runs one tool after the other in one JVM, and returns the output; a failure shows both streams."""

    GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"

    def __init__(self, bootstrap: str, version: str = CURRENT) -> None:
        self.bootstrap = bootstrap
        self.process = subprocess.Popen(
            java_command(version, str(PROGRAM)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, main: str, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Returns exit code, stdout and stderr."""
        assert self.process.stdin is not None and self.process.stdout is not None
        words = (base64.b64encode(word.encode()).decode() for word in (main, stdin, *arguments))
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the JVM ended while {main} ran: {self.process.wait()}"
        status, *streams = line.rstrip("\n").split(" ")
        output, complaints = (base64.b64decode(stream).decode() for stream in streams)
        return int(status), output, complaints

    def __call__(self, main: str, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        status, output, complaints = self.run(main, "--bootstrap-server", self.bootstrap, *arguments, stdin=stdin)
        assert bool(status) is fails, f"{main} {arguments}\n{output}\n{complaints}"
        return output + complaints if fails else output

    def close(self) -> None:
        """Ends the JVM."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(10) == 0

    def topics(self, *arguments: str, **more: Any) -> str:
        return self(f"{TOOLS}.TopicCommand", *arguments, **more)

    def groups(self, *arguments: str, **more: Any) -> str:
        return self(self.GROUPS, *arguments, **more)

    def shares(self, *arguments: str, **more: Any) -> str:
        return self(f"{TOOLS}.consumer.group.ShareGroupCommand", *arguments, **more)

    def configs(self, *arguments: str, **more: Any) -> str:
        return self("kafka.admin.ConfigCommand", *arguments, **more)

    def transactions(self, *arguments: str, **more: Any) -> str:
        return self(f"{TOOLS}.TransactionsCommand", *arguments, **more)

    def produce(self, topic: str, lines: str, *more: str) -> str:
        return self(f"{TOOLS}.ConsoleProducer", "--topic", topic, *more, stdin=lines)

    def offsets(self, topic: str, *more: str) -> list[str]:
        return self(f"{TOOLS}.GetOffsetShell", "--topic", topic, *more).split()


@pytest.fixture(scope="module")
def tools(kafka_jars: Path, beside: Any) -> Iterator[Tools]:
    with closing(Tools(beside.bootstrap)) as tools:
        yield tools


@contextmanager
def tools_and_broker(kind: str, home: Path, configs: Mapping[str, str] | None = None) -> Iterator[Tools]:
    """Starts a broker, ``apache`` or ``barnabas``, and yields Apache Kafka's tools with its address."""
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    with ExitStack() as stack:
        if kind == "apache":
            bootstrap = stack.enter_context(ApacheKafka(home, configs)).bootstrap
        else:
            bootstrap = stack.enter_context(Broker(configs)).bootstrap_servers
        yield stack.enter_context(closing(Tools(bootstrap)))


def rows(table: str) -> list[dict[str, str]]:
    """Returns the rows of a tool's table, whose cells are single words."""
    lines = [line.split() for line in table.splitlines() if line.strip()]
    return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]


def test_topics(tools: Tools, topic: str) -> None:
    made = tools.topics("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=86400000")
    assert made.strip() == f"Created topic {topic}."
    assert "TopicExistsException" in tools.topics("--create", "--topic", topic, fails=True)
    tools.topics("--alter", "--topic", topic, "--partitions", "3")
    described = tools.topics("--describe", "--topic", topic)
    head, *partitions = described.strip().splitlines()
    assert f"Topic: {topic}" in head
    assert "PartitionCount: 3" in head
    assert "ReplicationFactor: 1" in head
    assert "retention.ms=86400000" in head
    assert [re.findall(r"(?:Partition|Leader|Replicas|Isr): (\d+)", line) for line in partitions] == [
        [str(index), "1", "1", "1"] for index in range(3)
    ]
    assert topic in tools.topics("--list").split()
    tools.topics("--delete", "--topic", topic)
    assert topic not in tools.topics("--list").split()


def test_topic_configs(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    changed = tools.configs(
        "--alter", *of_topic, "--add-config", "max.message.bytes=4321,cleanup.policy=[compact,delete]"
    )
    assert "Completed updating config" in changed
    described = tools.configs("--describe", *of_topic)
    assert "max.message.bytes=4321" in described
    assert "cleanup.policy=compact,delete" in described
    tools.configs("--alter", *of_topic, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in tools.configs("--describe", *of_topic)
    everything = tools.configs("--describe", "--all", *of_topic)
    assert "max.message.bytes=1048588" in everything
    assert "no.such.config" in tools.configs("--alter", *of_topic, "--add-config", "no.such.config=1", fails=True)


def test_broker_configs(tools: Tools) -> None:
    of_broker = ("--entity-type", "brokers", "--entity-name", "1")
    tools.configs("--alter", *of_broker, "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in tools.configs("--describe", *of_broker)
    tools.configs("--alter", *of_broker, "--delete-config", "log.cleaner.threads")
    everything = tools.configs("--describe", "--all", *of_broker)
    assert "log.cleaner.threads=1 " in everything
    assert "num.partitions=2 " in everything


def test_produce_and_consume(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "2")
    parsed = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    tools.produce(topic, "h:1\tone\tfirst\nh:2\ttwo\tsecond\nh:3\tthree\t\n", *parsed, "--compression-codec", "lz4")
    shown = [f"print.{what}=true" for what in ("key", "headers", "offset", "partition")]
    read = tools(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000"),
        *(each for name in shown for each in ("--formatter-property", name)),
    )
    lines = [line.split("\t") for line in read.splitlines()]
    assert sorted(line[2:] for line in lines) == [
        ["h:1", "one", "first"],
        ["h:2", "two", "second"],
        ["h:3", "three", ""],
    ]
    assert sorted(tools.offsets(topic)) == sorted(
        f"{topic}:{index}:{sum(line[0] == f'Partition:{index}' for line in lines)}" for index in (0, 1)
    )


def test_consumer_groups(tools: Tools, topic: str) -> None:
    group = f"{topic}-group"
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    tools.produce(topic, "a\nb\nc\nd\n")
    tools(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--group", group, "--max-messages", "4", "--timeout-ms", "20000"),
    )
    tools.produce(topic, "e\n")
    assert group in tools.groups("--list").split()
    (row,) = rows(tools.groups("--describe", "--group", group))
    assert (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) == ("4", "5", "1")
    (state,) = rows(tools.groups("--describe", "--group", group, "--state"))
    assert state["GROUP"] == group
    assert "Empty" in state.values()
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    assert rows(tools.groups(*reset, "--shift-by", "-3", "--dry-run"))[0]["NEW-OFFSET"] == "1"
    assert rows(tools.groups(*reset, "--to-earliest", "--execute"))[0]["NEW-OFFSET"] == "0"
    assert rows(tools.groups("--describe", "--group", group))[0]["LAG"] == "5"
    assert "Successful" in tools.groups("--delete-offsets", "--group", group, "--topic", topic)
    assert "was successful" in tools.groups("--delete", "--group", group)
    assert group not in tools.groups("--list").split()
    _, *streams = tools.run(tools.GROUPS, "--bootstrap-server", tools.bootstrap, "--describe", "--group", group)
    assert "GroupIdNotFoundException" in "".join(streams)


def test_groups_of_the_consumer_protocol(tools: Tools, topic: str) -> None:
    group = f"{topic}-group"
    tools.topics("--create", "--topic", topic, "--partitions", "2")
    tools.produce(topic, "a\nb\nc\n")
    consumer = f"{TOOLS}.consumer.ConsoleConsumer"
    read = tools(
        consumer,
        *("--topic", topic, "--from-beginning", "--group", group, "--max-messages", "3", "--timeout-ms", "20000"),
        *("--command-property", "group.protocol=consumer"),
    )
    assert sorted(read.split()) == ["a", "b", "c"]
    assert group in tools.groups("--list", "--type", "consumer").split()
    assert group not in tools.groups("--list", "--type", "classic").split()
    (state,) = rows(tools.groups("--describe", "--group", group, "--state"))
    assert "Empty" in state.values()
    described = rows(tools.groups("--describe", "--group", group))
    assert sum(int(row["CURRENT-OFFSET"]) for row in described) == 3
    assert sum(int(row["LAG"]) for row in described) == 0
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    assert {row["NEW-OFFSET"] for row in rows(tools.groups(*reset, "--to-earliest", "--execute"))} == {"0"}
    member = InnerConsumer(
        {"bootstrap.servers": tools.bootstrap, "group.id": group, "group.protocol": "consumer", "log_level": 0}
    )
    member.subscribe([topic])
    deadline = time.monotonic() + 60
    while len(member.assignment()) < 2:
        assert time.monotonic() < deadline
        member.poll(0.1)
    (state,) = rows(tools.groups("--describe", "--group", group, "--state", "--verbose"))
    assert "Stable" in state.values()
    (found,) = rows(tools.groups("--describe", "--group", group, "--members", "--verbose"))
    assert found["#PARTITIONS"] == "2"
    assert f"{topic}:0,1" in found.values()
    member.close()
    assert "was successful" in tools.groups("--delete", "--group", group)


def test_share_groups(tools: Tools, topic: str) -> None:
    group = f"{topic}-share"
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    tools.produce(topic, "a\nb\nc\n")
    configured = tools.configs(
        *("--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )
    assert "Completed updating" in configured
    assert "share.auto.offset.reset=earliest" in tools.configs(
        *("--describe", "--entity-type", "groups", "--entity-name", group)
    )
    consumer = (f"{TOOLS}.consumer.ConsoleShareConsumer", "--topic", topic, "--group", group, "--timeout-ms", "20000")
    assert tools(*consumer, "--max-messages", "3").split() == ["a", "b", "c"]
    assert {"GROUP": group, "STATE": "Empty"} in rows(tools.shares("--list", "--state"))
    (state,) = rows(tools.shares("--describe", "--group", group, "--state"))
    assert "Empty" in state.values()
    tools.produce(topic, "d\ne\n")
    (row,) = rows(tools.shares("--describe", "--group", group))
    assert (row["TOPIC"], row["PARTITION"], row["LAG"]) == (topic, "0", "2")
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest")
    assert rows(tools.shares(*reset, "--dry-run"))[0]["NEW-OFFSET"] == "0"
    assert rows(tools.shares(*reset, "--execute"))[0]["NEW-OFFSET"] == "0"
    (row,) = rows(tools.shares("--describe", "--group", group))
    assert (row["START-OFFSET"], row["LAG"]) == ("0", "5")
    assert tools(*consumer, "--max-messages", "5", "--reject").split() == list("abcde")
    assert "Successful" in tools.shares("--delete-offsets", "--group", group, "--topic", topic)
    listed = rows(tools(f"{TOOLS}.GroupsCommand", "--list", "--share"))
    assert {"GROUP": group, "TYPE": "Share", "PROTOCOL": "share"} in listed
    assert "was successful" in tools.shares("--delete", "--group", group)
    assert group not in tools.shares("--list")


def test_offsets_and_deleted_records(tools: Tools, topic: str, tmp_path: Path) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    tools.produce(topic, "a\nb\n")
    tools.produce(topic, "c\n")  # certainly later, since the tool returns the first record with the latest time
    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]}))
    deleted = tools(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert re.search(rf"{topic}-0\s+low_watermark: 2", deleted)
    assert tools.offsets(topic, "--time", "earliest") == [f"{topic}:0:2"]
    assert tools.offsets(topic, "--time", "latest") == [f"{topic}:0:3"]
    assert tools.offsets(topic, "--time", "max-timestamp") == [f"{topic}:0:2"]


def test_the_cluster(tools: Tools, topic: str) -> None:
    versions = tools(f"{TOOLS}.BrokerApiVersionsCommand")
    assert "(id: 1 rack: null isFenced: false)" in versions
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", versions)
    assert re.search(r"Fetch\(1\): .*\[usable: \d+\]", versions)
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    text = tools(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic, "--broker-list", "1")
    printed = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    (directory,) = printed["brokers"][0]["logDirs"]
    assert directory["error"] is None
    assert [each["partition"] for each in directory["partitions"]] == [f"{topic}-0"]
    quorum = tools(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId:\s+1\b", quorum)


def test_transactions(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    producer = Producer({"bootstrap.servers": tools.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"value")
    assert producer.flush(60) == 0
    (listed,) = rows(
        tools.transactions("list", "--transactional-id-pattern", f"{topic}|nobody", "--duration-filter", "0")
    )
    assert (listed["TransactionalId"], listed["Coordinator"], listed["TransactionState"]) == (topic, "1", "Ongoing")
    (described,) = rows(tools.transactions("describe", "--transactional-id", topic))
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", f"{topic}-0")
    assert (described["ProducerId"], described["TransactionTimeoutMs"]) == (listed["ProducerId"], "60000")
    (writing,) = rows(tools.transactions("describe-producers", "--topic", topic, "--partition", "0"))
    assert (writing["ProducerId"], writing["CurrentTransactionStartOffset"]) == (listed["ProducerId"], "0")
    assert rows(tools.transactions("find-hanging", "--broker-id", "1")) == []
    tools.transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    (writing,) = rows(tools.transactions("describe-producers", "--topic", topic, "--partition", "0"))
    assert writing["CurrentTransactionStartOffset"] == "None"
    tools.transactions("forceTerminateTransaction", "--transactionalId", topic)
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    (described,) = rows(tools.transactions("describe", "--transactional-id", topic))
    assert described["TransactionState"] in ("PrepareAbort", "CompleteAbort", "Empty")


def test_features(tools: Tools) -> None:
    described = tools(f"{TOOLS}.FeatureCommand", "describe")
    for feature, newest in (("transaction.version", 2), ("group.version", 1), ("kraft.version", 1)):
        assert re.search(rf"{feature}\s+SupportedMinVersion: 0\s+SupportedMaxVersion: {newest}\s", described), described
    assert re.search(r"metadata.version .*FinalizedVersionLevel: 4\.3-IV0", described)
    assert "can not" in tools(
        f"{TOOLS}.FeatureCommand", "upgrade", "--feature", "transaction.version=9", fails=True
    ).lower().replace("cannot", "can not").replace("could not", "can not")


def produced_and_consumed(tools: Tools, topic: str, count: int) -> None:
    """Runs the performance tools, and checks that their counts are as requested."""
    _, sent, complaints = tools.run(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", str(count), "--record-size", "200", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={tools.bootstrap}", "acks=all", "compression.type=zstd"),
    )
    assert f"{count} records sent" in sent, complaints
    read = tools(f"{TOOLS}.ConsumerPerformance", "--topic", topic, "--messages", str(count), "--timeout", "20000")
    header, figures = (line.split(", ") for line in read.strip().splitlines()[-2:])
    by_name = dict(zip(header, figures, strict=False))
    assert next(value for name, value in by_name.items() if "nMsg" in name and "sec" not in name) == str(count)


def test_performance_tools(tools: Tools, topic: str) -> None:
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    produced_and_consumed(tools, topic, 5000)
    _, results, complaints = tools.run(
        f"{TOOLS}.EndToEndLatency",
        *("--bootstrap-server", tools.bootstrap, "--topic", topic, "--num-records", "50"),
        *("--producer-acks", "all", "--record-size", "100"),
    )
    assert "Avg latency" in results, complaints


def test_tools_of_the_line_before(kafka_jars: Path, beside: Any, topic: str) -> None:
    try:
        jars(PREVIOUS)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    tools = Tools(beside.bootstrap, PREVIOUS)
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    tools("kafka.tools.ConsoleProducer", "--topic", topic, stdin="one\ntwo\n")
    consumer = (f"{TOOLS}.consumer.ConsoleConsumer", "--topic", topic, "--from-beginning", "--timeout-ms", "20000")
    assert tools(*consumer, "--max-messages", "2", "--group", f"{topic}-group").split() == ["one", "two"]
    (row,) = rows(tools.groups("--describe", "--group", f"{topic}-group"))
    assert (row["CURRENT-OFFSET"], row["LAG"]) == ("2", "0")
    performed = f"{topic}-performed"
    tools.topics("--create", "--topic", performed, "--partitions", "2")
    produced_and_consumed(tools, performed, 3000)
    assert tools.process.stdin is not None
    tools.process.stdin.close()
    assert tools.process.wait(10) == 0
