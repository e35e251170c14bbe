"""confluent-kafka's serializers and its client of the registry, over sockets, with records through the broker."""

import json

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "by", "type": "string"}]}
JSON = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "by": {"type": "string"}},
    "required": ["id"],
}
ORDER = {"id": 7, "by": "Olga"}


@pytest.fixture
def registry(broker):
    with SchemaRegistryClient({"url": broker.schema_registry_url}) as client:
        yield client


def through(broker, topic, serializer, deserializer, value):
    """Returns a value that was produced and consumed, and its bytes."""
    context = SerializationContext(topic, MessageField.VALUE)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, serializer(value, context))
    assert producer.flush(20) == 0
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(20)
    consumer.close()
    return deserializer(message.value(), context), message.value()


def test_avro(broker, registry):
    text = json.dumps(AVRO)
    serializer, deserializer = AvroSerializer(registry, text), AvroDeserializer(registry)
    assert through(broker, "orders", serializer, deserializer, ORDER)[0] == ORDER
    assert registry.get_latest_version("orders-value").schema.schema_type == "AVRO"


def test_json(broker, registry):
    text = json.dumps(JSON)
    serializer, deserializer = JSONSerializer(text, registry), JSONDeserializer(None, schema_registry_client=registry)
    assert through(broker, "orders", serializer, deserializer, ORDER)[0] == ORDER
    assert registry.get_latest_version("orders-value").schema.schema_type == "JSON"


def shirt_class():
    """Returns the class of a message in a file that imports another one, and one of Protobuf's own."""
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    size = FileDescriptorProto(name="shop/size.proto", package="shop", syntax="proto3")
    size.message_type.add(name="Size").field.add(name="n", number=1, type=5, label=1)
    shirt = FileDescriptorProto(name="shop/shirt.proto", package="shop", syntax="proto3")
    shirt.dependency.extend(["shop/size.proto", "google/protobuf/timestamp.proto"])
    message = shirt.message_type.add(name="Shirt")
    message.field.add(name="size", number=1, type=11, label=1, type_name=".shop.Size")
    message.field.add(name="made", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    for each in (size, shirt):
        pool.Add(each)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Shirt"))


def test_protobuf_with_imports(broker, registry):
    shirt = shirt_class()
    value = shirt(size={"n": 3}, made={"seconds": 5})
    settings = {"use.deprecated.format": False}
    serializer = ProtobufSerializer(shirt, registry, settings)
    deserializer = ProtobufDeserializer(shirt, settings, schema_registry_client=registry)
    assert through(broker, "shirts", serializer, deserializer, value)[0] == value
    found = registry.get_latest_version("shirts-value").schema
    assert found.schema_type == "PROTOBUF"
    assert [(each.name, each.subject) for each in found.references] == [("shop/size.proto", "shop/size.proto")]
    assert 'import "shop/size.proto";' in found.schema_str
    # A client that has not registered it reads it, too.
    with SchemaRegistryClient({"url": broker.schema_registry_url}) as other:
        reader = ProtobufDeserializer(shirt, settings, schema_registry_client=other)
        assert through(broker, "others", serializer, reader, value)[0] == value


def test_the_client(registry):
    schema = Schema(json.dumps(AVRO), "AVRO")
    schema_id = registry.register_schema("orders-value", schema)
    found = registry.lookup_schema("orders-value", schema)
    assert (found.schema_id, found.version, found.subject) == (schema_id, 1, "orders-value")
    assert json.loads(registry.get_schema(schema_id).schema_str) == AVRO
    assert json.loads(registry.get_schema_by_guid(found.guid).schema_str) == AVRO
    assert registry.get_subjects() == ["orders-value"]
    assert registry.get_versions("orders-value") == [1]
    assert not registry.test_compatibility("orders-value", Schema('"int"', "AVRO"))
    assert registry.set_compatibility("orders-value", "NONE") == {"compatibility": "NONE"}
    assert registry.get_compatibility("orders-value") == "NONE"
    reference = SchemaReference("Order", "orders-value", 1)
    registry.register_schema("lists", Schema('{"type":"array","items":"Order"}', "AVRO", [reference]))
    with pytest.raises(SchemaRegistryError) as refused:
        registry.delete_version("orders-value", 1)
    assert refused.value.error_code == 42206
    assert registry.delete_subject("lists") == [1]
    assert registry.delete_subject("orders-value") == [1]
    assert registry.delete_subject("orders-value", permanent=True) == [1]
