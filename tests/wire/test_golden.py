"""Bytes of other programs in golden/: they decode, encode to the same bytes again, and no part of them is valid."""

import base64
import json
import pathlib
from typing import Any

import pytest

from barnabas.errors import MalformedMessage
from barnabas.wire.headers import RequestHeader, ResponseHeader
from barnabas.wire.messages import declared
from barnabas.wire.schema import Field, Struct
from barnabas.wire.types import Fixed

CLASSES: dict[str, Any] = {**declared(), "RequestHeader": RequestHeader, "ResponseHeader": ResponseHeader}
GOLDEN = pathlib.Path(__file__).parent / "golden"
CAPTURED = sorted(path.stem for path in GOLDEN.glob("*.hex"))
WRITTEN = sorted(path.stem for path in (GOLDEN / "apache").glob("*.txt"))
#: Newer than Apache Kafka 4.3.1, whose classes wrote the others.
UNWRITTEN = {
    "ApiVersionsRequest v5",
    "ApiVersionsResponse v5",
    "DeleteGroupsResponse v3",
    "StreamsGroupDescribeRequest v1",
    "StreamsGroupDescribeResponse v1",
    "StreamsGroupHeartbeatRequest v1",
    "StreamsGroupHeartbeatResponse v1",
    "StreamsGroupTopologyDescriptionUpdateRequest v0",
    "StreamsGroupTopologyDescriptionUpdateResponse v0",
    "TxnOffsetCommitRequest v6",
    "TxnOffsetCommitResponse v6",
    "UnregisterControllerRecord v0",
}


def check(cls: Any, version: int, data: bytes) -> None:
    message = cls.decode(data, version=version)
    assert message.encode(version=version) == data
    assert cls.decode(data + b"more", version=version) == message
    for end in range(len(data)):
        with pytest.raises(MalformedMessage):
            cls.decode(data[:end], version=version)


@pytest.mark.parametrize("name", CAPTURED)
def test_captured(name: str) -> None:
    message, _, version = name.partition("_v")
    check(CLASSES[message], int(version), bytes.fromhex((GOLDEN / f"{name}.hex").read_text()))


@pytest.mark.parametrize("name", WRITTEN)
def test_written_by_apache(name: str) -> None:
    for line in (GOLDEN / "apache" / f"{name}.txt").read_text().splitlines():
        version, data, *values = line.split(" ", 2)
        check(CLASSES[name], int(version), bytes.fromhex(data))
        if values:
            message = CLASSES[name].decode(bytes.fromhex(data), version=int(version))
            assert as_json(message, int(version)) == json.loads(values[0])


def test_every_version_of_every_message_is_covered() -> None:
    covered = {
        f"{name} v{line.split()[0]}"
        for name in WRITTEN
        for line in (GOLDEN / "apache" / f"{name}.txt").read_text().splitlines()
    }
    declared_versions = {
        f"{name} v{version}"
        for name, cls in CLASSES.items()
        for version in range(cls.versions.first, cls.versions.last + 1)
    }
    assert declared_versions - covered == UNWRITTEN


def as_json(structure: Struct, version: int) -> dict[str, Any]:
    """Returns the fields of that version as Apache Kafka's JsonConverters do; tagged ones only if they are present."""
    found = {}
    for field in structure.wire_fields():
        value = getattr(structure, field.name)
        if version in field.versions and (field.tag is None or field.name in vars(structure)):
            found[camel_case(field.name)] = value_as_json(value, field, version)
    return found


def value_as_json(value: Any, field: Field, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        one = field._replace(is_array=False)
        return [value_as_json(each, one, version) for each in value]
    if isinstance(field.kind, type):
        return as_json(value, version)
    if field.kind == Fixed("16s", 16, bytes(16)):
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def camel_case(name: str) -> str:
    first, *others = name.replace("kraft", "k_raft").split("_")
    return first + "".join(word.capitalize() for word in others)
