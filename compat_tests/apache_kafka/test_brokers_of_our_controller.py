"""Three brokers of Apache Kafka under a controller of ours: they are killed, stopped and started while they are used.

All acknowledged records are there at the end, once and in order. Leaders move as under Apache Kafka's controller.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.raw import Client

from .apache import ApacheBroker, errors_of
from .load import PARTITIONS, WITHIN, Load
from .test_metadata_observers import CLUSTER_ID, Controller

pytestmark = pytest.mark.xdist_group("several_brokers")  # it starts its own brokers

TOPIC = "orders"
IDS = (2, 3, 4)
SETTINGS = {"broker.heartbeat.interval.ms": "300", "replica.lag.time.max.ms": "5000", "min.insync.replicas": "2"}

State = dict[int, tuple[int, list[int], list[int]]]
"""Leader, replicas and ISR of each partition."""


class Three:
    """The brokers, by their ids, and their controller."""

    def __init__(self, home: Path) -> None:
        self.controller = Controller(home / "controller", standalone=False)
        self.controller.overrides["broker.session.timeout.ms"] = "3000"
        self.brokers = {
            each: ApacheBroker(home / f"broker-{each}", each, CLUSTER_ID, self.controller.quorum, SETTINGS)
            for each in IDS
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start(self) -> None:
        self.controller.start()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda broker: broker.start(), self.brokers.values()))

    def ask(self, request: object, version: int) -> object:
        """Sends a request to a running broker, which forwards it to the controller."""
        broker = next(each for each in self.brokers.values() if each.process is not None)
        with Client(broker.port, timeout=30) as client:
            return client.ask(request, version)  # type: ignore[arg-type]

    def state(self) -> State:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        found = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
        return {index: (each.leader, list(each.replicas), sorted(each.isrs)) for index, each in found.items()}

    def until(self, holds: Callable[[State], bool]) -> State:
        deadline = time.monotonic() + WITHIN
        while True:
            state = self.state()
            if holds(state):
                return state
            assert time.monotonic() < deadline, state
            time.sleep(0.1)

    def end(self) -> None:
        for broker in self.brokers.values():
            broker.stop(kill=True)
        self.controller.kill()


@pytest.fixture
def three(kafka_jars: Path, tmp_path: Path) -> Iterator[Three]:
    cluster = Three(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def all_in_sync(state: State) -> bool:
    return all(isr == sorted(IDS) for _, _, isr in state.values())


def consumed(bootstrap: str) -> list[list[int]]:
    """Returns all records of the topic, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    found: list[list[int]] = []
    for partition in range(PARTITIONS):
        place = TopicPartition(TOPIC, partition, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=10)
        consumer.assign([place])
        numbers: list[int] = []
        while consumer.position([place])[0].offset < end:
            for message in consumer.consume(1000, timeout=1):
                assert message.error() is None, message.error()
                numbers.append(int(message.value() or b""))
        found.append(numbers)
    consumer.close()
    return found


def test_brokers_come_and_go(three: Three) -> None:
    replicas = [[2, 3, 4], [3, 4, 2], [4, 2, 3]]
    admin = AdminClient({"bootstrap.servers": three.bootstrap})
    (made,) = admin.create_topics([NewTopic(TOPIC, PARTITIONS, replica_assignment=replicas)]).values()
    made.result(20)
    three.until(all_in_sync)
    # With several requests in flight librdkafka can meet OUT_OF_ORDER_SEQUENCE_NUMBER at a leader change. It then takes
    # the next producer epoch, and sends again what had been replicated: each log would have a record twice.
    load = Load(three.bootstrap, TOPIC, in_flight=1)
    load.goes_on()

    # One is killed: its session ends, the others lead; it is restarted.
    three.brokers[2].stop(kill=True)
    three.until(lambda state: all(leader in (3, 4) and 2 not in isr for leader, _, isr in state.values()))
    three.brokers[2].start()
    three.until(all_in_sync)

    # One stops cleanly: by then it leads nothing.
    three.brokers[3].stop()
    state = three.state()
    assert all(leader in (2, 4) for leader, _, _ in state.values()), state
    three.brokers[3].start()
    three.until(all_in_sync)

    # The controller itself is killed, and finds them all again.
    three.controller.kill()
    three.controller.start()

    response = three.ask(ElectLeadersRequest(election_type=0, topic_partitions=None), 2)
    assert response.error_code == 0  # type: ignore[attr-defined]
    three.until(lambda state: [leader for leader, _, _ in state.values()] == [2, 3, 4])

    # Partitions move, and with them the leader of one.
    wanted = AlterPartitionReassignmentsRequest.ReassignableTopic
    moves = [
        wanted.ReassignablePartition(partition_index=index, replicas=target)
        for index, target in ((0, [3, 4]), (1, [4, 3, 2]))
    ]
    three.ask(AlterPartitionReassignmentsRequest(topics=[wanted(name=TOPIC, partitions=moves)]), 0)
    three.until(lambda state: state[0] == (3, [3, 4], [3, 4]) and state[1][1] == [4, 3, 2])

    load.stop()
    assert load.failures == []
    assert min(map(len, load.acknowledged)) > 100
    assert consumed(three.bootstrap) == load.acknowledged

    # One is unregistered.
    three.brokers[2].stop()
    response = three.ask(UnregisterBrokerRequest(broker_id=2), 0)
    assert response.error_code == 0  # type: ignore[attr-defined]
    assert three.controller.complaints() == []
    for broker in three.brokers.values():
        assert errors_of(broker.log.read_text()) == []
