"""Encoding and decoding compared with kafka-python's codec, for every API and version of both."""

import importlib
import pkgutil
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import kafka.protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.api_message import ApiMessage

from barnabas.wire.message import Message, Request, Response
from barnabas.wire.messages import declared
from barnabas.wire.schema import Struct
from barnabas.wire.types import ZERO_UUID, Fixed

WIRE = settings.get_profile("wire")


def subclasses(cls: Any) -> Iterator[Any]:
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


def kafka_python_messages() -> dict[str, Any]:
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
    return {cls.__name__: cls for cls in subclasses(ApiMessage) if cls._class_version is None}


THEIRS = kafka_python_messages()
SHARED = [
    (cls, version)
    for name, cls in declared().items()
    if issubclass(cls, Request | Response) and name in THEIRS
    for version in range(cls.versions.first, min(cls.versions.last, THEIRS[name].max_version) + 1)
]


def converted(structure: Struct, their: Any, version: int) -> Any:
    """Returns the structure in kafka-python's classes; fields are paired by their order."""
    given = {}
    mine = [field for field in structure.wire_fields() if version in field.versions]
    others = [field for field in their._struct._fields if field.for_version_q(version)]
    for field, other in zip(mine, others, strict=True):
        value = getattr(structure, field.name)
        if field.tag is not None and value == field.default:
            continue  # kafka-python would write a structure of defaults, which Apache Kafka omits
        if isinstance(field.kind, type) and value is not None:
            inner = getattr(their, other.type_str.removeprefix("[]"))
            if field.is_array:
                value = [converted(each, inner, version) for each in value]
            else:
                value = converted(value, inner, version)
        elif field.kind == Fixed("16s", 16, ZERO_UUID) and value is not None:
            value = [uuid.UUID(bytes=each) for each in value] if field.is_array else uuid.UUID(bytes=value)
        elif other.type_str == "bitfield":
            value = {bit for bit in range(32) if value >> bit & 1}
        given[other.name] = value
    return their(version=version, **given)


def test_most_messages_are_shared() -> None:
    assert len({cls for cls, _ in SHARED}) == 2 * 52


@pytest.mark.parametrize(("cls", "version"), SHARED, ids=lambda value: getattr(value, "__name__", f"v{value}"))
@given(data=st.data())
@settings(parent=WIRE)
def test_same_bytes(any_value: Callable[..., Any], cls: type[Message], version: int, data: st.DataObject) -> None:
    message = data.draw(any_value(cls, version))
    if cls.__name__ == "ApiVersionsResponse":
        message.error_code = 0  # with an error kafka-python always reads version 0 (KIP-511)
    encoded = message.encode(version=version)
    theirs = THEIRS[cls.__name__]
    assert bytes(converted(message, theirs, version).encode(version=version)) == encoded
    assert cls.decode(encoded, version=version) == message
    decoded = theirs.decode(encoded, version=version)
    decoded._header = None  # which some of its classes use, and decode() omits
    assert bytes(decoded.encode(version=version)) == encoded
