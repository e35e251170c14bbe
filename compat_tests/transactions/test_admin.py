"""kafka-python's admin client describes and ends transactions; the other two clients have no such methods."""

import contextlib
import time
from collections.abc import Iterator

import pytest
from kafka import TopicPartition
from kafka.admin._transactions import AbortTransactionSpec, TransactionState

from compat_tests.adapters import Transactional
from compat_tests.adapters.base import WAIT_S
from compat_tests.adapters.kafka_python import KafkaPythonClient


@pytest.fixture
def library(bootstrap: str) -> Iterator[KafkaPythonClient]:
    with contextlib.closing(KafkaPythonClient(bootstrap)) as made:
        yield made


def an_open_one(library: KafkaPythonClient, topic: str, name: str) -> Transactional:
    library.create_topic(topic, 2)
    producer = library.transactional(name, timeout_ms=54_321)
    producer.begin()
    for partition in range(2):
        producer.send(topic, b"value", partition=partition).result()
    return producer


def test_an_open_transaction_is_listed_and_described(library: KafkaPythonClient, topic: str, name: str) -> None:
    producer, admin = an_open_one(library, topic, name), library.admin
    described = admin.describe_transactions([name])[name]
    places = {TopicPartition(topic, partition) for partition in range(2)}
    assert (described.state, described.transaction_timeout_ms) == (TransactionState.ONGOING, 54_321)
    assert described.topic_partitions == places
    assert described.transaction_start_time_ms > 0

    def listed(**filters: object) -> list[str]:
        found = admin.list_transactions(**filters).values()
        return [each.state for listings in found for each in listings if each.transactional_id == name]

    assert listed() == ["Ongoing"]
    assert listed(state_filters=["Ongoing"]) == ["Ongoing"]
    assert listed(state_filters=["Empty"]) == []
    assert listed(producer_id_filters=[described.producer_id]) == ["Ongoing"]
    assert listed(producer_id_filters=[described.producer_id + 1]) == []
    for state in admin.describe_producers(list(places)).values():
        (active,) = state.active_producers
        assert (active.producer_id, active.producer_epoch) == (described.producer_id, described.producer_epoch)
        assert (active.last_sequence, active.current_transaction_start_offset) == (0, 0)
    producer.commit()
    deadline = time.monotonic() + WAIT_S
    while admin.describe_transactions([name])[name].state != TransactionState.COMPLETE_COMMIT:
        assert time.monotonic() < deadline, "the markers are not written"
    for state in admin.describe_producers(list(places)).values():
        assert [each.current_transaction_start_offset for each in state.active_producers] == [-1]


def test_one_partition_is_aborted_by_an_admin(library: KafkaPythonClient, topic: str, name: str) -> None:
    producer, admin = an_open_one(library, topic, name), library.admin
    described = admin.describe_transactions([name])[name]
    place = TopicPartition(topic, 0)
    admin.abort_transaction(AbortTransactionSpec(place, described.producer_id, described.producer_epoch, 0))
    reader = library.consumer(isolation="read_committed")
    assert [reader.bounds((topic, partition))[1] for partition in range(2)] == [2, 0]
    producer.abort()


def test_nothing_hangs(library: KafkaPythonClient, topic: str, name: str) -> None:
    producer = an_open_one(library, topic, name)
    assert not library.admin.find_hanging_transactions(max_transaction_timeout_ms=0)
    producer.commit()
