"""Encoding and decoding compared with kio's codec, for every API and version of both.

kio's classes have narrower types than the wire: error codes, durations and times are chosen so that they are valid.
Fields are paired by their order.
"""

import dataclasses
import datetime
import io
import pkgutil
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from barnabas.wire.headers import RequestHeader, ResponseHeader
from barnabas.wire.message import Message
from barnabas.wire.messages import declared
from barnabas.wire.schema import Field, Struct
from barnabas.wire.types import ZERO_UUID, Fixed

WIRE = settings.get_profile("wire")
ERRORS = st.sampled_from([int(code) for code in ErrorCode])
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
CLASSES = {**declared(), "RequestHeader": RequestHeader, "ResponseHeader": ResponseHeader}
#: kio writes tagged structures of defaults in them, which Apache Kafka omits (golden/apache has it).
DEFAULTS_WRITTEN = {"FetchSnapshotResponse", "UpdateRaftVoterResponse"}


def kio_classes() -> dict[tuple[str, int], str]:
    """Returns the module of kio's class for each name and version that both have."""
    found = {}
    for versions in schema_name_map.values():
        for version, kinds in versions.items():
            for kind, place in kinds.items():
                assert kind in EntityType
                name = place.partition(":")[2]
                if name in CLASSES.keys() - DEFAULTS_WRITTEN and version in CLASSES[name].versions:
                    found[name, version] = place
    return found


THEIRS = kio_classes()


def narrowed(field: Field) -> st.SearchStrategy[Any] | None:
    if field.name.endswith("error_code"):
        return ERRORS
    if isinstance(field.kind, Fixed) and field.kind.format == "q" and field.name.endswith(("_ms", "timestamp")):
        return st.integers(0, 4_000_000_000_000)
    return None


def converted(structure: Struct, their: Any, version: int) -> Any:
    """Returns the structure in kio's classes."""
    mine = [field for field in structure.wire_fields() if version in field.versions]
    given = {}
    for field, other in zip(mine, dataclasses.fields(their), strict=True):
        value = getattr(structure, field.name)
        if field.tag is not None and (value == field.default or (field.is_array and not value)):
            continue
        given[other.name] = converted_value(value, field, other, version)
    return their(**given)


def converted_value(value: Any, field: Field, other: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        one = field._replace(is_array=False)
        return tuple(converted_value(each, one, other, version) for each in value)
    if isinstance(field.kind, type):
        return converted(value, class_within(other.type), version)
    kafka_type = other.metadata["kafka_type"]
    if kafka_type == "uuid":
        return None if value == ZERO_UUID else uuid.UUID(bytes=value)
    if kafka_type == "error_code":
        return ErrorCode(value)
    if kafka_type.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kafka_type == "datetime_i64":
        return EPOCH + datetime.timedelta(milliseconds=value)
    return value


def class_within(hint: Any) -> Any:
    """Returns the dataclass in ``X``, ``X | None`` or ``tuple[X, ...]``."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next(found for each in getattr(hint, "__args__", ()) if (found := class_within(each)) is not None)


def test_most_messages_are_shared() -> None:
    assert len({name for name, _ in THEIRS}) > 70


@pytest.mark.parametrize(("name", "version"), sorted(THEIRS))
@given(data=st.data())
@settings(parent=WIRE)
def test_same_bytes(any_value: Callable[..., Any], name: str, version: int, data: st.DataObject) -> None:
    cls: type[Message] = CLASSES[name]
    theirs: Any = pkgutil.resolve_name(THEIRS[name, version])
    message = data.draw(any_value(cls, version, narrowed))
    encoded = message.encode(version=version)

    entity = converted(message, theirs, version)
    buffer = io.BytesIO()
    entity_writer(theirs)(buffer, entity)
    assert buffer.getvalue() == encoded
    assert entity_reader(theirs)(encoded, 0) == (entity, len(encoded))
    assert cls.decode(encoded, version=version) == message
