"""A data directory of Barnabas used by Apache Kafka, and back again: nothing is lost, and each continues from there.

The expected contents are those that the previous broker returned.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic

from compat_tests.test_kill import TOPIC as UNDER_FIRE
from compat_tests.test_kill import Load, create, everything, judge

from .apache import CURRENT, PREVIOUS, ApacheKafka, KafkaUnavailable, jars
from .hand_over import (
    BROKER,
    TOPIC,
    Counting,
    admin_of,
    alter,
    apache_on,
    barnabas_on,
    commit,
    complaints,
    differences,
    facts,
    fill,
    play,
    running,
    set_quota,
    wait,
    write,
)
from .play import error_codes
from .steps import ask

pytestmark = pytest.mark.xdist_group("hand_over")
OUT_OF_ORDER, OK = 45, 0
CAUSED_BY_THE_TEST = (r"Error processing append operation on partition \S+:counted-0",)
"""Apache Kafka's log lines about a refused batch out of order."""


def by_apache(bootstrap: str) -> None:
    """Makes contents by Apache Kafka that Barnabas would not write, or would write differently."""
    admin = admin_of(bootstrap)
    wait(
        admin.create_topics([NewTopic("returns", 2, 1, config={"compression.type": "lz4"}), NewTopic("passing", 1, 1)])
    )
    write(bootstrap, "returns", 20)
    wait(admin.delete_topics(["passing"]))
    wait(admin.create_partitions([NewPartitions("stamped", 3)]))
    write(bootstrap, "stamped", 9, start=50)
    write(bootstrap, "compacted", 30, keys=7, start=60)
    wait(admin.delete_records([TopicPartition("trimmed", 1, 4)]))
    alter(bootstrap, TOPIC, "orders", "retention.ms", "7776000000000")
    alter(bootstrap, BROKER, "", "log.cleaner.threads", "2")
    commit(bootstrap, "settled", {("orders", 0): 17, ("returns", 1): 5})
    set_quota(bootstrap, {"user": "olga", "client-id": None}, consumer_byte_rate=9e6, request_percentage=0.5)
    newer_group(bootstrap, "newer")
    transactions(bootstrap)


def guarded(bootstrap: str) -> list[Any]:
    """Returns a credential, which Barnabas keeps and does not use; makes it if it is missing."""
    request = ask("DescribeUserScramCredentials", v=0, Users=None)
    (credentials,) = found = play(bootstrap, request)
    if credentials["Results"]:
        return found
    credential = {"Name": "olga", "Mechanism": 1, "Iterations": 8192, "Salt": b"salt", "SaltedPassword": b"secret"}
    done = play(bootstrap, ask("AlterUserScramCredentials", v=0, Deletions=[], Upsertions=[credential]))
    assert error_codes(done) == {OK}, done
    return guarded(bootstrap)


def newer_group(bootstrap: str, group: str) -> None:
    """Makes a group of KIP-848 whose only member reads and commits."""
    configs = {"group.id": group, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, "enable.auto.commit": False, "log_level": 2, **configs})
    consumer.subscribe(["returns"])
    deadline = time.monotonic() + 60
    count = 0
    while count < 20:
        assert time.monotonic() < deadline, f"{count} of 20 records"
        count += len(consumer.consume(20, 0.5))
    consumer.commit(asynchronous=False)
    consumer.close()


def transactions(bootstrap: str) -> None:
    """Runs committed transactions with offsets, an aborted one, and one that stays open."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "till", "log_level": 2})
    producer.init_transactions(30)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "exactly-once", "log_level": 2})
    for ending in ("commit", "abort", "commit"):
        producer.begin_transaction()
        for number in range(6):
            producer.produce("orders", b"%s %d" % (ending.encode(), number), partition=number % 3)
        producer.flush(30)
        if ending == "commit":
            place = TopicPartition("orders", 1, 9)
            producer.send_offsets_to_transaction([place], reader.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    reader.close()
    still = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "still",
            "transaction.timeout.ms": 900_000,  # longer than this test takes
            "log_level": 2,
        }
    )
    still.init_transactions(30)
    still.begin_transaction()
    still.produce("codec_none", b"open", partition=0)
    assert still.flush(30) == 0


def by_barnabas(bootstrap: str) -> None:
    admin = admin_of(bootstrap)
    wait(admin.create_topics([NewTopic("again", 2, 1)]))
    write(bootstrap, "again", 10, compression_type="zstd")
    set_quota(bootstrap, {"user": "olga", "client-id": None}, consumer_byte_rate=8e6)
    set_quota(bootstrap, {"ip": "localhost"}, connection_creation_rate=2.0**31 - 1)
    write(bootstrap, "codec_none", 10, start=40)
    wait(admin.delete_topics(["stamped"]))
    commit(bootstrap, "settled", {("orders", 2): 19})
    alter(bootstrap, TOPIC, "again", "segment.ms", "3600000")


def goes_on(bootstrap: str, counting: Counting, last: int) -> None:
    """Checks the idempotent producer's state: its last batch is a duplicate, a gap is refused, the next one is
    appended.
    """
    end = counting.sequence
    assert counting.send_again(bootstrap, last) == (OK, end - last)
    assert counting.send(bootstrap, 1, skip=1) == (OUT_OF_ORDER, -1)
    assert counting.send(bootstrap, last) == (OK, end)


def await_log_starts(home: Path, *wanted: str) -> None:
    """Waits until the log start offsets set by DeleteRecords are on disk; a kill would undo them in both brokers."""
    deadline = time.monotonic() + 60
    while set(wanted) - (
        found := {line for path in home.glob("*/log-start-offset-checkpoint") for line in path.read_text().splitlines()}
    ):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@pytest.fixture
def ours_and_theirs(kafka_jars: Path, tmp_path: Path) -> Iterator[tuple[Any, ApacheKafka]]:
    """Returns both brokers on one directory and one port; neither runs."""
    theirs = apache_on(tmp_path)
    ours = barnabas_on(tmp_path)
    ours.port = theirs.port
    yield ours, theirs
    assert not complaints(theirs.log, CAUSED_BY_THE_TEST)
    assert not ours.complaints()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_there_and_back(ours_and_theirs: tuple[Any, ApacheKafka], kill: bool) -> None:
    ours, theirs = ours_and_theirs
    with running(ours, kill=kill) as bootstrap:
        fill(bootstrap)
        set_quota(bootstrap, {"user": None}, producer_byte_rate=1e12, controller_mutation_rate=1e6)
        counting = Counting(bootstrap)
        assert counting.send(bootstrap, 3) == (OK, 0)
        assert counting.send(bootstrap, 4) == (OK, 3)
        filled = facts(bootstrap)
        await_log_starts(ours.home, "trimmed 0 11")
    with running(theirs, kill=kill) as bootstrap:
        assert not differences(facts(bootstrap), filled)
        goes_on(bootstrap, counting, 4)
        by_apache(bootstrap)
        guard = guarded(bootstrap)
        added = facts(bootstrap)
        await_log_starts(ours.home, "trimmed 0 11", "trimmed 1 4")
    with running(ours, kill=kill) as bootstrap:
        assert not differences(facts(bootstrap), added)
        goes_on(bootstrap, counting, 4)
        by_barnabas(bootstrap)
        added = facts(bootstrap)
    if not kill:
        with running(theirs) as bootstrap:
            assert not differences(facts(bootstrap), added)
            assert guarded(bootstrap) == guard
            goes_on(bootstrap, counting, 4)
        assert len(list((ours.home / "data" / "__cluster_metadata-0").glob("*.checkpoint"))) > 1
    said = theirs.log.read_text()
    if not kill:
        assert "DUPLICATE_BROKER_REGISTRATION" not in said, "it had to wait for the end of a session"
        assert said.count("since clean shutdown file was found") == 2, "it went through a recovery"


class Following:
    """A group member that reads in its own thread; ``seen`` are the offsets of its records."""

    def __init__(self, bootstrap: str) -> None:
        patient = {"log_level": 2, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
        group = {"group.id": "followers", "auto.offset.reset": "earliest", "auto.commit.interval.ms": 100}
        self.consumer = Consumer({"bootstrap.servers": bootstrap, **group, **patient})
        self.consumer.subscribe([UNDER_FIRE])
        self.seen: set[tuple[int | None, int | None]] = set()
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.run, name="following")

    def run(self) -> None:
        while not self.ending.is_set():
            for message in self.consumer.consume(5000, 0.1):
                if message.error() is None:
                    self.seen.add((message.partition(), message.offset()))
        self.consumer.close()

    def __enter__(self) -> "Following":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()


@pytest.mark.timeout(300)
def test_clients_continue_through_kills_and_another_broker(ours_and_theirs: tuple[Any, ApacheKafka]) -> None:
    """Records that either broker acknowledged exist once and in order at both; a group's member reads all of them."""
    ours, theirs = ours_and_theirs
    ours.start()
    create(ours)
    with Load(ours.bootstrap, "only", "lz4") as load, Following(ours.bootstrap) as following:
        await_more(load, 2000)
        ours.kill()
        with running(theirs, kill=True):
            await_more(load, 2000)
        ours.start()
        await_more(load, 2000)
        load.drain()
        assert load.failures == []
        assert [len(acknowledged) for acknowledged in load.acknowledged] == load.sent
        found = everything(ours.bootstrap)
        judge(found, load)
        count, deadline = sum(map(len, found.values())), time.monotonic() + 60
        while len(following.seen) < count:
            assert time.monotonic() < deadline, f"{len(following.seen)} of {count} were read"
            time.sleep(0.05)
    ours.stop()


def await_more(load: Load, count: int) -> None:
    """Waits until ``count`` more records are acknowledged."""
    before, deadline = load.acknowledged_count(), time.monotonic() + 90
    while load.acknowledged_count() < before + count:
        assert time.monotonic() < deadline, f"{load.acknowledged_count() - before} of {count} acknowledged"
        time.sleep(0.02)


MADE: dict[str, dict[str, Any]] = {
    "by 4.3.1, for one controller of several, two directories and one for the metadata, killed": {"standalone": True},
    "by 3.9.1, for this controller, stopped": {"version": PREVIOUS},
}
"""With voters in the metadata log (KIP-853), and with voters in the configs."""


@pytest.mark.parametrize("made", MADE)
def test_a_directory_that_apache_kafka_made(kafka_jars: Path, tmp_path: Path, made: str) -> None:
    """Apache Kafka's tool formats the directory; its broker uses it, then Barnabas, then its broker again."""
    options = MADE[made]
    try:
        jars(options.get("version", CURRENT))
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    where = {"log.dirs": f"{tmp_path}/data"}
    if "two directories" in made:
        where = {"log.dirs": f"{tmp_path}/data,{tmp_path}/more", "metadata.log.dir": f"{tmp_path}/metadata"}
    theirs, ours = apache_on(tmp_path, where, **options), barnabas_on(tmp_path, where)
    with running(theirs, kill="killed" in made) as bootstrap:
        fill(bootstrap)
        counting = Counting(bootstrap)
        assert counting.send(bootstrap, 5) == (OK, 0)
        filled = facts(bootstrap)
        await_log_starts(tmp_path, "trimmed 0 11")
    with running(ours) as bootstrap:
        assert not differences(facts(bootstrap), filled)
        goes_on(bootstrap, counting, 5)
        by_barnabas(bootstrap)
        added = facts(bootstrap)
    with running(theirs) as bootstrap:
        assert not differences(facts(bootstrap), added)
        goes_on(bootstrap, counting, 5)
    assert not complaints(theirs.log, CAUSED_BY_THE_TEST)
    assert not ours.complaints()
