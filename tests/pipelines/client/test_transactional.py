"""Transactions that are committed, aborted, fenced and abandoned, and coordinators that stop meanwhile."""

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from kafka.errors import KafkaConnectionError
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest, TxnOffsetCommitRequest

from barnabas.columnar.encoding import Columns
from barnabas.errors import InvalidTransactionTimeout, MessageTooLarge, ProducerFenced, UnknownTopicOrPartition
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.client.transactional import Transaction
from barnabas.pipelines.client.write_settings import WriteSettings
from barnabas.testing import Broker

MARKER = TopicPartition("__consumer_offsets", 3)


class Forgetful(Cluster):
    """Loses the response to the first request of each of these kinds."""

    lost: set[type] = set()

    async def send(self, node_id: Any, request: Any, timeout_ms: float | None = None) -> Any:
        answer = await super().send(node_id, request, timeout_ms)
        if type(request) in self.lost:
            self.lost.remove(type(request))
            raise KafkaConnectionError("gone before it was answered")
        return answer


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=2) as running:
        yield running


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Forgetful]:
    said = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "5", "default.api.timeout.ms": "10000"}
    made = Forgetful(ClientSettings.parse(said))
    made.lost = set()
    yield made
    made.close()


@pytest.fixture
def name() -> str:
    return str(uuid.uuid4())


def records(*values: bytes) -> Columns:
    return Columns(None, pa.array(values), None, np.zeros(len(values), np.int64))


def read(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, committed=True)]


def test_records_and_offsets_count_together(broker: Broker, cluster: Forgetful, name: str) -> None:
    transaction = Transaction(cluster, name)
    for number, committed in enumerate((True, False, True)):
        transaction.begin()
        transaction.produce(name, records(b"%d" % number))
        transaction.commit_offsets(name, {MARKER: number}, f"of {number}")
        if committed:
            transaction.commit()
        else:
            transaction.abort()
    found = cluster.committed(name, [MARKER])[MARKER]
    assert (found.offset, found.metadata) == (2, "of 2")
    assert sorted(read(broker, name)) == [b"0", b"2"]


def test_nothing_is_a_transaction_too(cluster: Forgetful, name: str) -> None:
    transaction = Transaction(cluster, name)
    transaction.begin()
    transaction.commit()
    transaction.begin()
    transaction.abort()


def test_it_has_to_begin(cluster: Forgetful, name: str) -> None:
    with pytest.raises(RuntimeError, match="has not begun"):
        Transaction(cluster, name).produce(name, records(b""))


def test_whoever_begins_fences_whoever_did_before(broker: Broker, cluster: Forgetful, name: str) -> None:
    zombie, owner = Transaction(cluster, name), Transaction(cluster, name)
    zombie.begin()
    zombie.produce(name, records(b"zombie"))
    owner.begin()
    words = f"another producer has begun a transaction as {name}"
    with pytest.raises(ProducerFenced, match=words):
        zombie.produce(name, records(*[b"more"] * 50))
        zombie.commit_offsets(name, {MARKER: 66})
    with pytest.raises(ProducerFenced, match=words):
        zombie.commit()
    zombie.abort()
    owner.produce(name, records(b"owner"))
    owner.commit()
    assert read(broker, name) == [b"owner"]
    assert cluster.committed(name, [MARKER]) == {}


@pytest.mark.parametrize("lost", [InitProducerIdRequest, TxnOffsetCommitRequest, EndTxnRequest])
def test_an_answer_that_is_lost_changes_nothing(broker: Broker, cluster: Forgetful, name: str, lost: type) -> None:
    cluster.lost = {lost}
    transaction = Transaction(cluster, name)
    for value in (b"a", b"b"):
        transaction.begin()
        transaction.produce(name, records(value))
        transaction.commit_offsets(name, {MARKER: 1})
        transaction.commit()
    assert not cluster.lost
    assert sorted(read(broker, name)) == [b"a", b"b"]


def test_what_is_refused_can_be_taken_back(broker: Broker, cluster: Forgetful, name: str) -> None:
    broker.create_topic(name, configs={"max.message.bytes": 2_000})
    transaction = Transaction(cluster, name)
    transaction.begin()
    transaction.produce(name, records(b"small"))
    transaction.produce(name, records(b"v" * 5_000))
    with pytest.raises(MessageTooLarge, match=name):
        transaction.commit()
    transaction.abort()
    transaction.begin()
    transaction.produce(name, records(b"another"))
    transaction.commit()
    assert read(broker, name) == [b"another"]


def test_offsets_of_a_partition_that_is_not_there_are_refused(cluster: Forgetful, name: str) -> None:
    transaction = Transaction(cluster, name)
    transaction.begin()
    with pytest.raises(UnknownTopicOrPartition, match=f"group {name}, nowhere-0"):
        transaction.commit_offsets(name, {TopicPartition("nowhere", 0): 1})
    transaction.abort()


def test_a_timeout_that_brokers_do_not_allow_is_named(cluster: Forgetful, name: str) -> None:
    transaction = Transaction(cluster, name, WriteSettings(transaction_timeout_ms=86_400_000))
    with pytest.raises(InvalidTransactionTimeout, match=r"kafka.transaction.timeout.ms is 86400000, more than"):
        transaction.begin()


@pytest.mark.parametrize("release", ["1.0", "2.4", "3.9"])
def test_older_brokers_have_transactions_too(name: str, release: str) -> None:
    with Broker(compatible_with=release) as old:
        cluster = Cluster(ClientSettings.parse({"bootstrap.servers": old.bootstrap_servers}))
        transaction = Transaction(cluster, name)
        transaction.begin()
        transaction.produce(name, records(b"a", b"b"))
        transaction.commit_offsets(name, {MARKER: 5}, "told")
        transaction.commit()
        assert read(old, name) == [b"a", b"b"]
        assert cluster.committed(name, [MARKER])[MARKER].metadata == "told"
        cluster.close()
