"""Clients outlive a restart of the broker: they keep their commits, groups and producer state."""

import contextlib
from collections.abc import Callable

import pytest

from compat_tests.adapters import CLIENTS
from compat_tests.running import Running
from compat_tests.waiting import poll_until, read


@pytest.mark.parametrize("ending", ["stop", "kill"])
@pytest.mark.parametrize("library", sorted(CLIENTS))
def test_offsets_configs_and_partitions_survive(
    own_broker: Callable[..., Running], topic: str, group: str, library: str, ending: str
) -> None:
    broker = own_broker()
    with contextlib.closing(CLIENTS[library](broker.bootstrap)) as client:
        client.create_topic(topic, 3, {"retention.ms": "123456789"})
        producer = client.producer()
        for n in range(30):
            producer.send(topic, b"%d" % n, partition=n % 3)
        producer.flush()
        consumer = client.consumer(group=group)
        consumer.subscribe([topic])
        read(consumer, 30)
        consumer.commit()
        consumer.close()
    getattr(broker, ending)()
    broker.start()
    with contextlib.closing(CLIENTS[library](broker.bootstrap)) as client:
        assert topic in client.topics()
        producer = client.producer()
        for index in range(3):
            assert producer.send(topic, b"after", partition=index).result() == (index, 10)
        consumer = client.consumer(group=group)
        consumer.subscribe([topic])
        assert [(record.value, record.offset) for record in read(consumer, 3)] == [(b"after", 10)] * 3


@pytest.mark.parametrize("ending", ["stop", "kill"])
@pytest.mark.parametrize("library", sorted(CLIENTS))
def test_connected_clients_continue(
    own_broker: Callable[..., Running], topic: str, group: str, library: str, ending: str
) -> None:
    broker = own_broker()
    with contextlib.closing(CLIENTS[library](broker.bootstrap)) as client:
        client.create_topic(topic)
        producer = client.producer(idempotent=True)
        consumer = client.consumer(group=group)
        consumer.subscribe([topic])
        producer.send(topic, b"before").result()
        assert read(consumer, 1)[0].value == b"before"
        consumer.commit()
        getattr(broker, ending)()
        broker.start()
        assert producer.send(topic, b"after").result().offset == 1
        heard: list[tuple[int, bytes | None]] = []

        def after_was_heard() -> bool:
            heard.extend((record.offset, record.value) for record in consumer.poll(0.1))
            return (1, b"after") in heard

        poll_until([], after_was_heard, "the record after the restart")
        assert [entry for entry in heard if entry[0] > 0] == [(1, b"after")]
