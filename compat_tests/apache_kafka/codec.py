"""Kafka's messages as dictionaries, encoded and decoded by the schemas in kafka-python's wheel.

Schemas that the wheel lacks come from Apache Kafka's own jar of clients.

A second, independent implementation: must not know ``barnabas.wire``, whose errors it finds.
"""

import functools
import importlib.util
import json
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .apache import CURRENT, jars

ZERO_UUID = bytes(16)

NUMBERS = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}


class Raw(bytes):
    """Bytes written instead of a field, for invalid messages."""


class Odd(Exception):
    """The bytes are not the expected message."""


class Versions(NamedTuple):
    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        if not text or text == "none":
            return cls(0, -1)
        first, plus, last = re.fullmatch(r"(\d+)(\+|-(\d+))?", text).group(1, 2, 3)  # type: ignore[union-attr]
        return cls(int(first), 32767 if plus == "+" else int(last or first))


class Field(NamedTuple):
    name: str
    kind: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: Any
    fields: "tuple[Field, ...]"
    flexible: Versions | None


class Message(NamedTuple):
    name: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]


def schemas() -> Path:
    found = importlib.util.find_spec("kafka")
    assert found is not None and found.origin is not None, "kafka-python is not installed"
    return Path(found.origin).parent / "protocol" / "schemas" / "resources"


def schema_text(name: str) -> str:
    file = schemas() / f"{name}.json"
    if file.exists():
        return file.read_text()
    with zipfile.ZipFile(jars() / f"kafka-clients-{CURRENT}.jar") as jar:
        return jar.read(f"common/message/{name}.json").decode()


@functools.cache
def message(name: str) -> Message:
    """Returns the schema of a message, by its full name (``FetchRequest``)."""
    return declared(json.loads(re.sub(r"(?m)^\s*//.*$", "", schema_text(name))))


def declared(outcomes: Mapping[str, Any]) -> Message:
    """A message's schema, as in Apache Kafka's files."""
    shared = {each["name"]: each["fields"] for each in outcomes.get("commonStructs", [])}
    return Message(
        outcomes["name"],
        outcomes.get("apiKey"),
        Versions.parse(outcomes["validVersions"]),
        Versions.parse(outcomes["flexibleVersions"]),
        tuple(field(each, shared) for each in outcomes["fields"]),
    )


def field(outcomes: Mapping[str, Any], shared: Mapping[str, Any]) -> Field:
    kind = outcomes["type"].removeprefix("[]")
    is_array = outcomes["type"].startswith("[]")
    inner = outcomes.get("fields") or shared.get(kind) or ()
    versions = Versions.parse(outcomes["versions"])
    nullable = Versions.parse(outcomes.get("nullableVersions"))
    fields = tuple(field(each, shared) for each in inner)
    override = outcomes.get("flexibleVersions")
    return Field(
        outcomes["name"],
        kind,
        is_array,
        versions,
        nullable,
        Versions.parse(outcomes.get("taggedVersions")),
        outcomes.get("tag"),
        default(outcomes.get("default"), kind, is_array, fields),
        fields,
        None if override is None else Versions.parse(override),
    )


def default(outcomes: Any, kind: str, is_array: bool, fields: Sequence[Field]) -> Any:
    if outcomes == "null":
        return None
    if is_array:
        return []
    if fields:
        return {each.name: each.default for each in fields}
    if kind == "bool":
        return str(outcomes).lower() == "true"
    if kind == "float64":
        return float(outcomes or 0)
    if kind in NUMBERS:
        return int(str(outcomes or 0), 0)
    return {"uuid": ZERO_UUID, "string": outcomes or ""}.get(kind, b"")


# ---------------------------------------------------------------- writing


def encode(schema: Message, values: Mapping[str, Any], version: int) -> bytes:
    """Encodes a message; missing fields have their defaults, fields of other versions are left out."""
    out: list[bytes] = []
    write_struct(out, schema.fields, values, version, version in schema.flexible, schema.name)
    return b"".join(out)


def write_struct(
    out: list[bytes], fields: Sequence[Field], values: Mapping[str, Any], version: int, flexible: bool, where: str
) -> None:
    unknown = set(values) - {each.name for each in fields}
    if unknown - {"tags"}:
        raise KeyError(f"{where} has no {', '.join(sorted(unknown))}")
    tagged: list[tuple[int, bytes]] = []
    for each in fields:
        if version not in each.versions:
            continue
        value = values.get(each.name, each.default)
        if version not in each.tagged:
            write_field(out, each, value, version, flexible, where)
        elif value != each.default:
            content: list[bytes] = []
            write_field(content, each, value, version, flexible, where)
            tagged.append((each.tag or 0, b"".join(content)))
    if flexible:
        tagged += values.get("tags", ())
        out.append(uvarint(len(tagged)))
        for tag, data in sorted(tagged):
            out += (uvarint(tag), uvarint(len(data)), data)


def write_field(out: list[bytes], each: Field, value: Any, version: int, flexible: bool, where: str) -> None:
    if each.flexible is not None:
        flexible = flexible and version in each.flexible
    if isinstance(value, Raw):
        out.append(value)
    elif not each.is_array:
        write_one(out, each, value, version, flexible, f"{where}.{each.name}")
    elif value is None:
        out.append(b"\0" if flexible else struct.pack(">i", -1))
    else:
        out.append(uvarint(len(value) + 1) if flexible else struct.pack(">i", len(value)))
        for item in value:
            if isinstance(item, Raw):
                out.append(item)
            else:
                write_one(out, each, item, version, flexible, f"{where}.{each.name}")


def write_one(out: list[bytes], each: Field, value: Any, version: int, flexible: bool, where: str) -> None:
    kind = each.kind
    if kind in NUMBERS:
        out.append(struct.pack(NUMBERS[kind], value))
    elif kind == "uuid":
        out.append(value)
    elif each.fields:
        if version in each.nullable and not each.is_array:
            out.append(b"\xff" if value is None else b"\x01")
        if value is not None:
            write_struct(out, each.fields, value, version, flexible, where)
    else:
        data = value.encode() if isinstance(value, str) else value
        out.append(length(None if data is None else len(data), kind, flexible))
        out.append(data or b"")


def length(size: int | None, kind: str, flexible: bool) -> bytes:
    if flexible:
        return uvarint(0 if size is None else size + 1)
    return struct.pack(">h" if kind == "string" else ">i", -1 if size is None else size)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# ---------------------------------------------------------------- reading


class Reader:
    """A position in bytes; a read past the end raises `Odd`."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if size < 0 or len(taken) != size:
            raise Odd(f"{size} bytes wanted at {self.at} of {len(self.data)}")
        self.at += size
        return taken

    def number(self, format: str) -> Any:
        return struct.unpack(format, self.take(struct.calcsize(format)))[0]

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def decode(schema: Message, data: bytes, version: int) -> dict[str, Any]:
    """Decodes a message to a dictionary; raises `Odd` for bytes that are not exactly the encoding of one message."""
    reader = Reader(data)
    values = read_struct(reader, schema.fields, version, version in schema.flexible)
    if reader.at != len(data):
        raise Odd(f"{schema.name} {version} ends at {reader.at} of {len(data)} bytes")
    if encode(schema, values, version) != data:
        raise Odd(f"{schema.name} {version} is not written as Apache Kafka writes it (a default among the tags?)")
    return values


def read_struct(reader: Reader, fields: Sequence[Field], version: int, flexible: bool) -> dict[str, Any]:
    present = [each for each in fields if version in each.versions]
    values = {each.name: each.default for each in present}
    for each in present:
        if version not in each.tagged:
            values[each.name] = read_field(reader, each, version, flexible)
    if flexible:
        by_tag = {each.tag: each for each in present if version in each.tagged}
        for tag, data in read_tags(reader):
            if tag in by_tag:
                values[by_tag[tag].name] = read_field(Reader(data), by_tag[tag], version, flexible)
            else:
                values.setdefault("tags", []).append((tag, data))
    return values


def read_tags(reader: Reader) -> Iterator[tuple[int, bytes]]:
    for _ in range(reader.uvarint()):
        tag = reader.uvarint()
        yield tag, reader.take(reader.uvarint())


def read_field(reader: Reader, each: Field, version: int, flexible: bool) -> Any:
    if each.flexible is not None:
        flexible = flexible and version in each.flexible
    if not each.is_array:
        return read_one(reader, each, version, flexible)
    count = reader.uvarint() - 1 if flexible else reader.number(">i")
    return None if count < 0 else [read_one(reader, each, version, flexible) for _ in range(count)]


def read_one(reader: Reader, each: Field, version: int, flexible: bool) -> Any:
    kind = each.kind
    if kind in NUMBERS:
        return reader.number(NUMBERS[kind])
    if kind == "uuid":
        return reader.take(16)
    if each.fields:
        if version in each.nullable and not each.is_array and reader.number(">b") < 0:
            return None
        return read_struct(reader, each.fields, version, flexible)
    size = reader.uvarint() - 1 if flexible else reader.number(">h" if kind == "string" else ">i")
    if size < 0:
        return None
    data = reader.take(size)
    return data.decode() if kind == "string" else data
