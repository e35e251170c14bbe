"""Topics with barnabas.value.schema.validation refuse values that name none of their schemas."""

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.errors import InvalidRecord
from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from barnabas.wire.messages.produce import ProduceRequest
from tests.raw import Client as Raw

CHECKED = {"barnabas.value.schema.validation": True}


def send(broker, value, headers=None, topic="orders"):
    failures = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, value, headers=headers, on_delivery=lambda error, record: failures.append(error))
    producer.flush(20)
    if failures[0] is not None:
        raise KafkaException(failures[0])


def refused(broker, value, headers=None):
    with pytest.raises(KafkaException) as error:
        send(broker, value, headers)
    assert error.value.args[0].name() == "INVALID_RECORD"


def test_values_name_a_schema_of_the_topic(broker, client):
    broker.create_topic("orders", configs=CHECKED)
    broker.create_topic("free")
    client.register("other", '"int"')
    guid = client.register("orders-value", '"string"')[1]["guid"]
    send(broker, b"\0\0\0\0\2tea")
    send(broker, None)
    send(broker, b"tea", {"__value_schema_id": b"\1" + bytes.fromhex(guid.replace("-", ""))})
    refused(broker, b"tea")
    refused(broker, b"\0\0\0\0\1tea")
    refused(broker, b"\0\0\0\0\2tea"[:4])
    refused(broker, b"tea", {"__value_schema_id": b"\1" + bytes(16)})
    send(broker, b"tea", topic="free")
    assert len(broker.records("orders")) == 3


def test_each_refused_record_is_named(broker, client):
    broker.create_topic("orders", configs=CHECKED)
    client.register("orders-value", '"string"')
    values = (b"\0\0\0\0\1tea", b"tea", b"\0\0\0\0\1tea", b"\0\0\0\0\7tea")
    batch = build_batch([(None, value, 0) for value in values])
    data = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=memoryview(bytes(batch)))
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    with Raw(broker.port) as raw:
        answer = raw.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)
    (refused,) = answer.responses[0].partition_responses
    assert refused.error_code == InvalidRecord.code
    assert [(each.batch_index, each.batch_index_error_message) for each in refused.record_errors] == [
        (1, "The value does not begin with the id of a schema"),
        (3, "The subject orders-value has no schema with the id 7"),
    ]
    assert broker.records("orders") == []


def test_a_broker_without_a_registry_refuses_all():
    with Broker() as broker:
        broker.create_topic("orders", configs=CHECKED)
        refused(broker, b"\0\0\0\0\1tea")
