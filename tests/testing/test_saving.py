"""A broker's state is saved and restored, and records are seeded."""

import json
import time

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from barnabas.errors import KafkaError
from barnabas.testing import Broker, State, allow


@pytest.fixture(scope="module")
def shared():
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared):
    shared.reset()
    return shared


def send(broker, topic, *values, **settings):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings) as producer:
        for value in values:
            producer.send(topic, value, partition=0).get(10)


def values(broker, topic="orders", **options):
    return [record.value for record in broker.records(topic, **options)]


def committed(broker, offset=None, group="cooks"):
    """Returns the group's committed offset; commits first if there is an offset."""
    there = TopicPartition("orders", 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=group, enable_auto_commit=False)
    try:
        if offset is not None:
            consumer.commit({there: OffsetAndMetadata(offset, "", -1)})
        return consumer.committed(there)
    finally:
        consumer.close()


def test_what_was_saved_comes_back(broker):
    broker.create_topic("orders", partitions=2, configs={"retention.ms": 3_600_000})
    send(broker, "orders", b"tea", b"milk")
    committed(broker, 1)
    state = broker.save()
    send(broker, "orders", b"rum")
    broker.create_topic("invoices")
    committed(broker, 3)

    for _ in range(2):
        broker.restore(state)
        assert broker.topics() == ["orders"]
        assert values(broker) == [b"tea", b"milk"]
        assert committed(broker) == 1
        send(broker, "orders", b"rum")
        assert [record.offset for record in broker.records("orders")] == [0, 1, 2]
    image = broker._server.broker.image
    assert dict(image.configs_of(2, "orders")) == {"retention.ms": "3600000"}
    assert len(image.topics_by_name["orders"].partitions) == 2


def test_a_state_is_kept_in_a_file_and_restored_in_another_broker(broker, tmp_path):
    broker.create_topic("orders")
    send(broker, "orders", b"tea", enable_idempotence=True)
    committed(broker, 1)
    file = tmp_path / "orders.state"
    broker.save().write(file)
    with Broker(node_id=5, on_disk=True) as other:
        other.restore(State.read(file))
        assert values(other) == [b"tea"]
        assert committed(other) == 1
        send(other, "orders", b"milk", enable_idempotence=True)  # with a producer id that the log does not have
        assert values(other) == [b"tea", b"milk"]
    with pytest.raises(ValueError, match="not the saved state"):
        State.from_bytes(b"no")


def test_transactions_come_back_and_go_on(broker):
    broker.create_topic("orders")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="shop")
    producer.init_transactions()
    for value, end in ((b"tea", producer.abort_transaction), (b"milk", producer.commit_transaction)):
        producer.begin_transaction()
        producer.send("orders", value).get(10)
        end()
    producer.close()
    state = broker.save()
    broker.restore(state)
    assert values(broker, committed=True) == [b"milk"]
    later = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="shop")
    later.init_transactions()
    later.begin_transaction()
    later.send("orders", b"rum")
    later.commit_transaction()
    later.close()
    assert values(broker, committed=True) == [b"milk", b"rum"]


def test_deleted_records_stay_deleted(broker):
    broker.create_topic("orders", configs={"retention.ms": 1000, "file.delete.delay.ms": 0})
    send(broker, "orders", b"tea")
    broker.clock.advance(hours=1)
    send(broker, "orders", b"milk")
    broker.restore(broker.save())
    assert [(record.offset, record.value) for record in broker.records("orders")] == [(1, b"milk")]


def test_acls_and_users():
    with Broker(users={"alice": "secret"}, acls=[allow("alice", "all", topic="orders")]) as broker:
        state = broker.save()
        broker.reset()
        broker.restore(state)
        broker.create_topic("orders")
        with KafkaProducer(**broker.client_settings("kafka-python", user="alice")) as producer:
            producer.send("orders", b"tea").get(10)
        assert len(broker._server.broker.image.acls) == 1


def test_a_small_state_is_restored_quickly(broker):
    broker.create_topic("orders", partitions=3)
    broker.seed([{"topic": "orders", "key": f"{n}", "value": "tea"} for n in range(100)])
    state = broker.save()
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        broker.restore(state)
        took.append(time.perf_counter() - begin)
    assert min(took) < 0.05  # 2 ms on a quiet machine


def test_seeding_from_a_file(broker, tmp_path):
    broker.create_topic("orders", partitions=3)
    file = tmp_path / "orders.jsonl"
    lines = [
        {"topic": "orders", "partition": 2, "key": "21", "value": "tea", "timestamp": 1000, "offset": 7},
        {"key_base64": "/w==", "value": {"drink": "milk"}, "headers": [{"name": "of", "value": "shop"}]},
        {"topic": "invoices"},
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    assert broker.seed(file, "orders") == 3
    tea = next(record for record in broker.records("orders") if record.value == b"tea")
    assert (tea.partition, tea.offset, tea.timestamp, tea.key) == (2, 0, 1000, b"21")
    milk = next(record for record in broker.records("orders") if record.value == b'{"drink":"milk"}')
    assert (milk.key, milk.headers) == (b"\xff", (("of", b"shop"),))
    assert [record.value for record in broker.records("invoices")] == [None]
    file.write_text(json.dumps(lines[:1]))
    assert broker.seed(str(file)) == 1


def test_keys_go_where_clients_would_send_them(broker):
    broker.create_topic("orders", partitions=7)
    broker.create_topic("same", partitions=7)
    keys = [f"key {n}".encode() for n in range(30)]
    broker.seed([{"topic": "orders", "key": key.decode()} for key in keys])
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for key in keys:
            producer.send("same", key=key)
    places = [{(record.key, record.partition) for record in broker.records(topic)} for topic in ("orders", "same")]
    assert places[0] == places[1]


@pytest.mark.parametrize(
    ("line", "said"),
    [("nonsense", "line 1: Expecting value"), ("{}", 'line 1: a record needs a "topic"'), ("3", "line 1: ")],
)
def test_a_line_that_is_no_record(broker, tmp_path, line, said):
    (tmp_path / "f").write_text(line)
    with pytest.raises(ValueError, match=said):
        broker.seed(tmp_path / "f")


def test_a_partition_that_does_not_exist(broker):
    broker.create_topic("orders")
    with pytest.raises(KafkaError):
        broker.seed([{"topic": "orders", "partition": 4}])
