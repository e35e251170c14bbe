"""A data directory used by one broker, then by the other, and its contents as clients see them.

Knows nothing of files: the contents of a directory are read through the broker that runs on it.
"""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka
from .play import Play, Step, error_codes
from .steps import ask, produce

SETTINGS = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "600000",
    "log.retention.ms": "-1",
    "log.initial.task.delay.ms": "100",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "5000",
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": "200",
}
"""The configs of both brokers."""

QUICK_SESSIONS = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}
"""The session timeout of brokers: a killed broker is fenced after it, and the default is nine seconds."""

IN_ORDER = (
    r"Performing controller activation",  # each start of a controller warns of it
    r"NodeToControllerChannelManager .* Attempting to close NetworkClient that has already been closed",  # each stop
    r"EventPerformanceMonitor .* Exceptionally slow controller event",  # a loaded machine
    r"controller event queue overloaded|REQUEST_TIMED_OUT|[Tt]imed out|TimeoutException|request timeout",  # the same
    r"NotControllerException: The active controller appears to be node 1",  # asked between two of its elections
    r"NetworkClient .* ([Dd]isconnect|Connection to node|Bootstrap broker|Cancelled in-flight)",  # a late broker
    # Retention runs into the beginning of leadership.
    r"Uncaught exception in scheduled task 'kafka-log-retention'\n.* cannot be resumed since it is not paused",
    r"Non-monotonic update of high watermark",  # after a kill: written less often than log start offsets
    r"Failed to load metadata from __\w+-\d+ .* Stopped loading records",  # after a kill: until the broker registers
    r"Auto topic creation failed for __consumer_offsets .* already exists",  # two clients send the request at once
    r"Expected partition stamped-[12] .* Creating",  # partitions that were added to a topic, each time
)
"""Lines above INFO that Apache Kafka logs on its own directories, too."""

COMPLAINT = re.compile(r"^\[[^]]*\] (WARN|ERROR|FATAL) ")


def apache_on(home: Path, properties: dict[str, str] | None = None, **options: Any) -> ApacheKafka:
    return ApacheKafka(home, {**SETTINGS, **QUICK_SESSIONS, **(properties or {})}, **options)


def barnabas_on(home: Path, properties: dict[str, str] | None = None) -> BarnabasProcess:
    return BarnabasProcess(home, {**SETTINGS, **(properties or {})})


def complaints(log: Path, allowed: Sequence[str] = ()) -> list[str]:
    """Returns the warnings and errors that Apache Kafka logged, except those that it logs on its own directories as
    well.
    """
    fine = re.compile("|".join((*IN_ORDER, *allowed)))
    lines = log.read_text(errors="replace").splitlines()
    found = [
        line if following.startswith("[") else f"{line}\n{following}"  # the exception, where there is one
        for line, following in zip(lines, [*lines[1:], "["], strict=True)
        if COMPLAINT.search(line)
    ]
    return [complaint for complaint in found if not fine.search(complaint)]


@contextmanager
def running(broker: "ApacheKafka | BarnabasProcess", *, kill: bool = False) -> Iterator[str]:
    """Yields the bootstrap address once the broker leads all partitions; stops it cleanly at the end, or kills it."""
    broker.start()
    try:
        await_leaders(broker.bootstrap)
        yield broker.bootstrap
    except BaseException:
        kill = True
        raise
    finally:
        if isinstance(broker, ApacheKafka):
            broker.stop(kill=kill)
        elif kill:
            broker.kill()
        else:
            broker.stop()


def await_leaders(bootstrap: str, seconds: float = 60) -> None:
    admin, deadline = admin_of(bootstrap), time.monotonic() + seconds
    while True:
        found = admin.list_topics(timeout=seconds)
        leaders = [each.leader for topic in found.topics.values() for each in topic.partitions.values()]
        if found.brokers and all(leader >= 0 for leader in leaders):
            return
        assert time.monotonic() < deadline, f"not led within {seconds} s: {leaders.count(-1)} of {len(leaders)}"
        time.sleep(0.05)


def await_partitions(bootstrap: str, topic: str, seconds: float = 60) -> int:
    """Returns the number of partitions of a topic, once the broker knows it: its controller creates it before."""
    admin, deadline = admin_of(bootstrap), time.monotonic() + seconds
    while not (found := admin.list_topics(topic, seconds).topics[topic].partitions):
        assert time.monotonic() < deadline, f"there is no topic {topic} within {seconds} s"
        time.sleep(0.05)
    return len(found)


def play(bootstrap: str, *steps: Step) -> list[Any]:
    """Returns the responses to raw requests."""
    host, _, port = bootstrap.partition(":")
    run = Play((host, int(port)), "", {})
    run.run(steps)
    return [answer for _, _, answer in run.transcript]


# ---------------------------------------------------------------- reading the contents


def facts(bootstrap: str) -> dict[str, Any]:
    """Returns all cluster data that clients can read: equal if nothing was lost, added or changed."""
    cluster, versions = play(
        bootstrap,
        ask("Metadata", v=12, Topics=None, AllowAutoTopicCreation=False),
        ask("ApiVersions", v=4, ClientSoftwareName="compat", ClientSoftwareVersion="1"),
    )
    topics = {each["Name"]: each for each in cluster["Topics"]}
    places = [(name, each["PartitionIndex"]) for name in sorted(topics) for each in topics[name]["Partitions"]]
    mine = [place for place in sorted(places) if not place[0].startswith("__")]
    return {
        "cluster": cluster["ClusterId"],
        "controller": cluster["ControllerId"],
        "brokers": [each["NodeId"] for each in cluster["Brokers"]],
        "features": {each["Name"]: each["MaxVersionLevel"] for each in versions["FinalizedFeatures"]},
        "topics": {name: (each["TopicId"], each["IsInternal"]) for name, each in topics.items()},
        "partitions": sorted(places),
        "configs": configs(bootstrap, topics),
        "quotas": quotas(bootstrap),
        "directories": directories(bootstrap),
        "records": {isolation: records(bootstrap, mine, isolation) for isolation in ISOLATION},
        "groups": groups(bootstrap, mine),
    }


def differences(found: Any, wanted: Any, where: str = "") -> list[str]:
    """Returns the differences of two sets of facts in words; empty if they are equal."""
    if found == wanted:
        return []
    if isinstance(found, dict) and isinstance(wanted, dict):
        return [
            line
            for name in sorted({*found, *wanted}, key=str)
            for line in differences(found.get(name), wanted.get(name), f"{where}/{name}")
        ]
    return [f"{where}: {found!r:.500} instead of {wanted!r:.500}"]


def set_quota(bootstrap: str, entity: Mapping[str, str | None], **values: float) -> None:
    """Sets quotas of an entity, whose names are by types."""
    entry = {
        "Entity": [{"EntityType": kind, "EntityName": name} for kind, name in entity.items()],
        "Ops": [{"Key": key, "Value": value} for key, value in values.items()],
    }
    (answer,) = play(bootstrap, ask("AlterClientQuotas", v=1, Entries=[entry], ValidateOnly=False))
    assert error_codes(answer) == {0}, answer


def quotas(bootstrap: str) -> dict[str, dict[str, float]]:
    """Returns the quotas of users, client ids and addresses."""
    (answer,) = play(bootstrap, ask("DescribeClientQuotas", v=1, Components=[], Strict=False))
    return {
        str(sorted((part["EntityType"], str(part["EntityName"])) for part in each["Entity"])): {
            value["Key"]: value["Value"] for value in each["Values"]
        }
        for each in answer["Entries"]
    }


def directories(bootstrap: str) -> dict[str, tuple[str, int]]:
    """Returns the log directory of each partition of clients' topics, and its size there in bytes."""
    (answer,) = play(bootstrap, ask("DescribeLogDirs", v=4, Topics=None))
    return {
        f"{topic['Name']}-{each['PartitionIndex']}": (directory["LogDir"], each["PartitionSize"])
        for directory in answer["Results"]
        for topic in directory["Topics"]
        for each in topic["Partitions"]
        if not topic["Name"].startswith("__")
    }


def configs(bootstrap: str, topics: Any) -> dict[str, dict[str, str]]:
    """Returns the configs that were set: of each topic, of the broker and of all brokers."""
    resources = [(2, name) for name in sorted(topics)] + [(4, "1"), (4, "")]
    (answer,) = play(
        bootstrap,
        ask(
            "DescribeConfigs", v=4, Resources=[{"ResourceType": kind, "ResourceName": name} for kind, name in resources]
        ),
    )
    dynamic = (1, 2, 3)  # of a topic, of a broker, of all brokers
    return {
        f"{each['ResourceType']} {each['ResourceName']}": {
            config["Name"]: config["Value"]
            for config in sorted(each["Configs"], key=lambda config: str(config["Name"]))
            if config["ConfigSource"] in dynamic[:1] + dynamic[1:] * (each["ResourceType"] == 4)
        }
        for each in answer["Results"]
    }


ISOLATION = {"read_uncommitted": 0, "read_committed": 1}


def records(bootstrap: str, places: Sequence[tuple[str, int]], isolation: str) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the bounds of each partition and its records, with digests for long values."""
    bounds = {which: list_offsets(bootstrap, places, ISOLATION[isolation], which) for which in (EARLIEST, LATEST)}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "facts",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 2,
        }
    )
    consumer.assign([TopicPartition(*place, bounds[EARLIEST][place]) for place in places])
    found: dict[Any, list[tuple[Any, ...]]] = {
        place: [(bounds[EARLIEST][place], bounds[LATEST][place])] for place in places
    }
    reading, deadline = set(places), time.monotonic() + 60
    while reading:
        assert time.monotonic() < deadline, f"not read to their ends: {reading}"
        for message in consumer.consume(1000, 0.1):
            error, place = message.error(), (message.topic(), message.partition())
            if error is None:
                found[place].append(comparable(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                reading.discard(place)
            else:
                raise KafkaException(error)
    consumer.close()
    return {f"{topic}-{index}": each for (topic, index), each in found.items()}


def comparable(message: Message) -> tuple[Any, ...]:
    value = message.value()
    if value is not None and len(value) > 100:
        value = hashlib.sha256(value).digest()
    return message.offset(), message.timestamp(), message.key(), value, message.headers()


def list_offsets(
    bootstrap: str, places: Sequence[tuple[str, int]], isolation: int, timestamp: int
) -> dict[tuple[str, int], int]:
    topics: dict[str, list[dict[str, int]]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append({"PartitionIndex": index, "Timestamp": timestamp})
    wanted = [{"Name": topic, "Partitions": partitions} for topic, partitions in topics.items()]
    deadline = time.monotonic() + 60
    while True:  # a broker may appear as the leader before it leads
        (answer,) = play(bootstrap, ask("ListOffsets", v=7, ReplicaId=-1, IsolationLevel=isolation, Topics=wanted))
        if error_codes(answer) == {0}:
            break
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    return {
        (topic["Name"], each["PartitionIndex"]): each["Offset"]
        for topic in answer["Topics"]
        for each in topic["Partitions"]
    }


def groups(bootstrap: str, places: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Returns the committed offsets of each group."""
    (listed,) = play(bootstrap, ask("ListGroups", v=4, until=("ErrorCode", 0)))
    found = {}
    for each in sorted(listed["Groups"], key=lambda group: str(group["GroupId"])):
        (answer,) = play(bootstrap, ask("OffsetFetch", v=7, GroupId=each["GroupId"], Topics=None))
        found[each["GroupId"]] = sorted(
            (topic["Name"], part["PartitionIndex"], part["CommittedOffset"], part["Metadata"])
            for topic in answer["Topics"]
            for part in topic["Partitions"]
        )
    return found


# ---------------------------------------------------------------- writing the contents


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC, BROKER = 2, 4
"""Resource types of configs."""

LATEST, EARLIEST = -1, -2

T0 = 1_700_000_000_000


COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}


def fill(bootstrap: str) -> None:
    """Makes one of everything that a data directory can hold."""
    admin = admin_of(bootstrap)
    topics = [
        NewTopic("orders", 3, 1, config={"retention.ms": "-1", "segment.bytes": "1048576"}),
        NewTopic("compacted", 1, 1, config=COMPACTED),
        NewTopic("shrunk", 1, 1, config={**COMPACTED, "segment.bytes": "1048576"}),
        NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
        NewTopic("trimmed", 2, 1),
        NewTopic("counted", 1, 1),
        NewTopic("short.lived", 2, 1),
        *(NewTopic(f"codec_{codec}", 2, 1) for codec in CODECS),
    ]
    wait(admin.create_topics(topics))
    with ThreadPoolExecutor() as writers:  # each waits half a second for its producer id
        written = [
            *(writers.submit(write, bootstrap, f"codec_{codec}", 40, compression_type=codec) for codec in CODECS),
            # Two segments of each partition.
            writers.submit(write, bootstrap, "orders", 60, size=100_000, batch_num_messages=1),
            # All of it is in the active segment, which is not compacted.
            writers.submit(write, bootstrap, "compacted", 60, keys=7),
            # Eleven batches to a segment.
            writers.submit(write, bootstrap, "shrunk", 30, size=100_000, keys=5, batch_num_messages=1),
            *(writers.submit(write, bootstrap, topic, 50) for topic in ("stamped", "trimmed", "short.lived")),
        ]
    for each in written:
        each.result()
    await_compaction(bootstrap, "shrunk", 5 + 8)
    wait(admin.delete_records([TopicPartition("trimmed", 0, 11)]))
    wait(admin.delete_topics(["short.lived"]))
    alter(bootstrap, BROKER, "1", "log.cleaner.delete.retention.ms", "90000000")
    alter(bootstrap, TOPIC, "orders", "max.message.bytes", "2000000")
    commit(bootstrap, "settled", {("orders", index): 3 + index for index in range(3)})
    commit(bootstrap, "billing", {("codec_gzip", 0): 2})


def await_compaction(bootstrap: str, topic: str, left: int) -> None:
    """Waits until ``left`` records remain: the last of each key, and those of the active segment."""
    deadline = time.monotonic() + 60
    while True:
        (found,) = records(bootstrap, [(topic, 0)], "read_uncommitted").values()
        if len(found) == 1 + left:
            return
        assert time.monotonic() < deadline, f"{len(found) - 1} records instead of {left}"


def admin_of(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})


def wait(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(30)


def write(bootstrap: str, topic: str, count: int, *, size: int = 0, keys: int = 0, start: int = 0, **more: Any) -> None:
    """Writes records with keys, headers and timestamps, some without a value, to all partitions in turn."""
    partitions = await_partitions(bootstrap, topic)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "log_level": 2,
            "enable.idempotence": True,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    failures: list[Any] = []
    for number in range(start, start + count):
        producer.produce(
            topic,
            None
            if number % 10 == 9
            else Random(number).randbytes(size) or b"value %d of %s" % (number, topic.encode()),
            b"key %d" % (number % keys if keys else number),
            partition=number % partitions,
            timestamp=T0 + 1000 * number,
            headers=[("number", b"%d" % number), ("nothing", None)] if number % 2 else None,
            on_delivery=lambda error, _: failures.append(error) if error is not None else None,
        )
    assert producer.flush(60) == 0
    assert not failures


def alter(bootstrap: str, kind: int, name: str, config: str, value: str) -> None:
    """Sets a config of a topic (2) or of a broker (4), of all brokers if no name is given."""
    change = {"Name": config, "ConfigOperation": 0, "Value": value}
    resource = {"ResourceType": kind, "ResourceName": name, "Configs": [change]}
    (answer,) = play(bootstrap, ask("IncrementalAlterConfigs", v=1, Resources=[resource]))
    assert answer["Responses"][0]["ErrorCode"] == 0, answer


def commit(bootstrap: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commits offsets as a consumer without a group membership."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 2}
    )
    places = [TopicPartition(*place, offset, metadata=f"note {offset}") for place, offset in offsets.items()]
    deadline = time.monotonic() + 60
    while True:
        try:
            for committed in consumer.commit(offsets=places, asynchronous=False):
                assert committed.error is None
            break
        except KafkaException as error:  # a new coordinator may still be loading
            assert error.args[0].code() == KafkaError.COORDINATOR_LOAD_IN_PROGRESS, error
            assert time.monotonic() < deadline, error
    consumer.close()


class Counting:
    """An idempotent producer by raw requests, which continues on the broker that has the directory."""

    def __init__(self, bootstrap: str) -> None:
        (answer,) = play(bootstrap, ask("InitProducerId", v=4, TransactionalId=None, TransactionTimeoutMs=60000))
        self.producer = {"producer_id": answer["ProducerId"], "producer_epoch": answer["ProducerEpoch"]}
        self.sequence = 0

    def send(self, bootstrap: str, count: int, *, skip: int = 0) -> tuple[int, int]:
        """Returns error code and base offset of a batch with the next sequence number, or with one that is ``skip``
        ahead.
        """
        answer = self._produce(bootstrap, self.sequence + skip, count)
        if answer[0] == 0:
            self.sequence += count
        return answer

    def send_again(self, bootstrap: str, count: int) -> tuple[int, int]:
        """Sends the last batch again."""
        return self._produce(bootstrap, self.sequence - count, count)

    def _produce(self, bootstrap: str, sequence: int, count: int) -> tuple[int, int]:
        values = [b"%d" % number for number in range(sequence, sequence + count)]
        # Producer state expires a day after the timestamp of the last record.
        batch = {**self.producer, "sequence": sequence, "base_timestamp": time.time_ns() // 1_000_000}
        (answer,) = play(bootstrap, produce("counted", *values, v=9, **batch))
        (partition,) = answer["Responses"][0]["PartitionResponses"]
        return partition["ErrorCode"], partition["BaseOffset"]
