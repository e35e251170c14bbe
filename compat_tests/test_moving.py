"""Partitions change their log directories under load: clients see no loss and no duplicate, even after kill -9.

kafka-python's admin client starts the moves, and describes them; the load is that of ``test_kill.py``.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaAdminClient

from compat_tests.running import Running
from compat_tests.test_kill import PARTITIONS, TOPIC, Load, create, everything, judge

ROUNDS = int(os.environ.get("BARNABAS_SOAK_ROUNDS", "4"))


@contextmanager
def administrating(broker: Running) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        yield admin


def move(broker: Running, target: str) -> None:
    """Starts moving all partitions to ``target``."""
    with administrating(broker) as admin:
        (node,) = admin.describe_cluster()["brokers"]
        wishes = {(TOPIC, partition, node["broker_id"]): target for partition in range(PARTITIONS)}
        answers = admin.alter_replica_log_dirs(wishes)
        assert {answer.errno for answer in answers.values()} == {0}


def places(broker: Running) -> dict[int, list[tuple[str, bool]]]:
    """Returns the directory of each partition (false), and that of its future replica (true)."""
    found = defaultdict(list)
    with administrating(broker) as admin:
        for of_broker in admin.describe_log_dirs({TOPIC: list(range(PARTITIONS))}):
            for directory in of_broker["log_dirs"]:
                assert directory["error_code"] == 0
                for topic in directory["topics"]:
                    for each in topic["partitions"]:
                        found[each["partition_index"]].append((directory["log_dir"], each["is_future_key"]))
    return found


def arrive(broker: Running, target: str) -> None:
    deadline = time.monotonic() + 60
    while places(broker) != {partition: [(target, False)] for partition in range(PARTITIONS)}:
        assert time.monotonic() < deadline, places(broker)
        time.sleep(0.01)


def await_more(load: Load) -> None:
    """Waits until the load has more acknowledgements."""
    before, deadline = load.acknowledged_count(), time.monotonic() + 60
    while load.acknowledged_count() < before + 1000:
        assert time.monotonic() < deadline, "nothing is acknowledged any more"
        time.sleep(0.01)


class Reader:
    """A consumer that reads all partitions, on its own thread: ``numbers`` by partition, in the order of receipt."""

    def __init__(self, bootstrap: str) -> None:
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "along", "enable.auto.commit": False})
        self.consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        self.numbers: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, name="reader")

    def _run(self) -> None:
        while not self.ending.is_set():
            for message in self.consumer.consume(5000, 0.05):
                if message.error():
                    self.errors.append(str(message.error()))
                else:
                    self.numbers[message.partition()].append(int(message.value()))

    def __enter__(self) -> "Reader":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()
        self.consumer.close()

    def await_all(self, sent: list[int]) -> None:
        deadline = time.monotonic() + 60
        while [len(numbers) for numbers in self.numbers] != sent:
            assert time.monotonic() < deadline, ([len(numbers) for numbers in self.numbers], sent)
            time.sleep(0.01)


@pytest.fixture
def directories(tmp_path: Path) -> list[str]:
    return [str(tmp_path / name) for name in "ab"]


def configs(directories: list[str], **more: str) -> dict[str, str]:
    return {
        "log.dirs": ",".join(directories),
        "log.segment.bytes": str(1 << 20),
        "auto.create.topics.enable": "false",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@pytest.mark.timeout(180 + 10 * ROUNDS)
def test_clients_do_not_notice_a_move(own_broker: Callable[..., Running], directories: list[str]) -> None:
    broker = own_broker(configs(directories))
    create(broker)
    assert {place for found in places(broker).values() for place, _ in found} == set(directories)
    with Load(broker.bootstrap, "only", "lz4") as load, Reader(broker.bootstrap) as reader:
        for turn in range(ROUNDS):
            target = directories[turn % 2]
            await_more(load)
            move(broker, target)
            arrive(broker, target)
        await_more(load)
        load.drain()
        assert load.failures == []
        assert [len(acknowledged) for acknowledged in load.acknowledged] == load.sent
        reader.await_all(load.sent)
    assert reader.errors == []
    assert reader.numbers == [list(range(count)) for count in load.sent]
    judge(everything(broker.bootstrap), load)


@pytest.mark.timeout(180 + 10 * ROUNDS)
def test_kill_9_while_partitions_move(own_broker: Callable[..., Running], directories: list[str]) -> None:
    broker = own_broker(configs(directories))
    create(broker)
    with Load(broker.bootstrap, "only", "lz4") as load:
        for turn in range(ROUNDS):
            target = directories[turn % 2]
            await_more(load)
            move(broker, target)
            time.sleep(0.02 * turn)  # at another moment each time
            broker.kill()
            broker.start()
        arrive(broker, target)
        await_more(load)
        load.drain()
    assert load.failures == []
    assert [len(acknowledged) for acknowledged in load.acknowledged] == load.sent
    judge(everything(broker.bootstrap), load)
