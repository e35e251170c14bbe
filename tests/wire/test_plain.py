"""Messages as plain values."""

import json
from collections.abc import Iterator

import pytest

from barnabas.records.batch import Compression
from barnabas.records.message_set import build_wrapper
from barnabas.records.record import Record
from barnabas.wire.message import Request, Response
from barnabas.wire.messages import declared
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.plain import HIDDEN, plain, plain_records
from barnabas.wire.schema import Struct
from barnabas.wire.secrets import CONFIG_VALUES, SECRETS, is_secret


def paths(structure: type[Struct]) -> Iterator[str]:
    for field in structure.wire_fields():
        yield f"{structure.__qualname__}.{field.name}"
        if isinstance(field.kind, type):
            yield from paths(field.kind)


def test_each_secret_is_a_declared_field() -> None:
    there = {path for each in declared().values() if issubclass(each, Request | Response) for path in paths(each)}
    assert there >= SECRETS | CONFIG_VALUES


def test_every_message_in_every_version_becomes_json(samples) -> None:
    for cls, version, data in samples:
        found = plain(cls.decode(data, version=version), version, is_secret)
        assert list(found) == [field.name for field in cls.wire_fields() if version in field.versions]
        json.dumps(found)


def test_the_subscription_of_a_consumer_is_decoded() -> None:
    metadata = ConsumerProtocolSubscription(topics=["orders"]).encode_prefixed(1)
    protocols = [
        JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=given)
        for name, given in (("range", metadata), ("own", b"\0\1x"))
    ]
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer", protocols=protocols
    )
    first, second = plain(request, 5)["protocols"]
    assert first["metadata"]["topics"] == ["orders"]
    assert second["metadata"] == {"hex": "000178"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("retention.ms", "7"),
        ("log.retention.ms", "7"),
        ("ssl.key.password", HIDDEN),
        ("listener.name.x.ssl.key.password", HIDDEN),
        ("nobody.knows", HIDDEN),
    ],
)
def test_passwords_in_configs_are_hidden(name, shown) -> None:
    Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = Resource.AlterableConfig(name=name, config_operation=0, value="7")
    resource = Resource(resource_type=4, resource_name="1", configs=[config])
    found = plain(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1, is_secret)
    assert found["resources"][0]["configs"][0]["value"] == shown


def test_messages_of_older_formats() -> None:
    data = build_wrapper([Record(3, 8, b"k", b"tea"), Record(4, 9, None, b"\xff")], 1, Compression.GZIP)
    (wrapper,) = plain_records(data)
    assert (wrapper["magic"], wrapper["last_offset"], wrapper["crc_ok"]) == (1, 4, True)
    assert wrapper["records"] == [
        {"offset": 3, "timestamp": 8, "key": "k", "value": "tea"},
        {"offset": 4, "timestamp": 9, "key": None, "value": {"hex": "ff"}},
    ]


def test_what_is_no_batch_is_told() -> None:
    assert "damage" in next(plain_records(bytes(16) + b"\3" * 70))
