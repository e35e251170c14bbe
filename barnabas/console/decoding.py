"""Decodes bytes for pages: text, JSON, Avro and Protobuf with schemas, Protobuf without a schema, hex.

Knows nothing of topics. The libraries of Avro and Protobuf are imported when a value needs them.
"""

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

import click

from barnabas.pipelines.values.framing import HEADER_BYTES, Undecodable, message_indexes, schema_id_of

SHOWN_CHARACTERS: Final = 2_000
"""The maximum length of a key or value in a list, in characters."""

KINDS: Final = ("auto", "text", "json", "avro", "protobuf", "hex")


MISSING_S: Final = 30
"""The time for which a response of the registry is cached: a missing schema may be registered later."""


KEY: Final = "__key_schema_id"
VALUE: Final = "__value_schema_id"
GUID_MAGIC: Final = b"\1"
GUID_BYTES: Final = 17

Headers = Sequence[tuple[str, bytes | None]]


class Schema(NamedTuple):
    """A schema of the registry."""

    kind: str
    text: str
    references: tuple[tuple[str, str], ...]  #: names and texts, dependencies first


class NoSchema(ValueError):
    """The schema of a value is not available."""


def decoded(
    data: bytes | None, kind: str = "auto", registry: str | None = None, limit: int = SHOWN_CHARACTERS
) -> dict[str, Any]:
    """Returns bytes as text, with their kind, whether the text is complete, and a note on their schema or its absence.

    :param kind: one of ``KINDS``; auto detects it
    :param registry: the URL of a schema registry
    """
    if data is None:
        return {"kind": "null", "text": "null", "is_cut": False, "note": ""}
    if kind != "auto":
        try:
            found, text, note = kind, *_AS[kind](data, registry)
        except Exception as error:  # any error of a library
            found, text, note = "hex", data[:limit].hex(" "), f"not {kind}: {error}"
    else:
        found, text, note = _guessed(data, registry)
    is_cut = len(text) > limit or (found == "hex" and len(data) > limit)
    return {"kind": found, "text": text[:limit], "is_cut": is_cut, "note": note}


def framed(data: bytes | None, headers: Headers, name: str, registry: str | None) -> bytes | None:
    """Returns a key or value whose schema a header names by its GUID in the usual form, with the schema's id before it.

    :param name: ``KEY`` or ``VALUE``
    """
    if data is None or registry is None:
        return data
    named = next((value for header, value in headers if header == name and value is not None), b"")
    if len(named) < GUID_BYTES or named[:1] != GUID_MAGIC:
        return data
    guid = str(UUID(bytes=bytes(named[1:GUID_BYTES])))
    number = _id_of_guid(registry, guid, int(time.monotonic() // MISSING_S))
    # What follows the GUID are the indexes of a Protobuf message.
    return data if number is None else b"\0" + number.to_bytes(4, "big") + bytes(named[GUID_BYTES:]) + data


@lru_cache(1024)
def _id_of_guid(registry: str, guid: str, when: int) -> int | None:
    """Returns the id of a schema in the default context; None if it has none there."""
    from barnabas.cli.schemas import Client

    try:
        found = Client(registry)("GET", f"/schemas/guids/{guid}/ids")
    except click.ClickException:
        return None
    return next((each["id"] for each in found if each["context"] == "."), None)


def _guessed(data: bytes, registry: str | None) -> tuple[str, str, str]:
    if data[:1] == b"\0" and len(data) >= HEADER_BYTES and registry is not None:
        try:
            schema_kind = _schema(registry, schema_id_of(data))[0].lower()
            return schema_kind, *_AS[schema_kind](data, registry)
        except Exception:  # the bytes only resemble a value with a schema
            pass
    try:
        text = data.decode("utf-8")
    except ValueError:
        return "hex", data[: SHOWN_CHARACTERS * 8].hex(" "), ""
    if text[:1] in ("{", "["):
        try:
            return "json", _pretty(json.loads(text)), ""
        except (ValueError, RecursionError):
            pass
    return ("text", text, "") if text.isprintable() or not _has_controls(text) else ("hex", data.hex(" "), "")


def _has_controls(text: str) -> bool:
    return any(each < " " and each not in "\t\r\n" for each in text)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    return value.hex(" ") if isinstance(value, bytes) else str(value)


# ------------------------------------------------------------------ each kind


def _text(data: bytes, registry: str | None) -> tuple[str, str]:
    return data.decode("utf-8", "replace"), ""


def _hex(data: bytes, registry: str | None) -> tuple[str, str]:
    return data.hex(" "), ""


def _json(data: bytes, registry: str | None) -> tuple[str, str]:
    if data[:1] == b"\0":
        return _pretty(json.loads(data[HEADER_BYTES:])), f"schema {schema_id_of(data)}"
    return _pretty(json.loads(data)), ""


def _avro(data: bytes, registry: str | None) -> tuple[str, str]:
    import fastavro

    number = schema_id_of(data)
    schema = _avro_schema(registry, number)
    return _pretty(fastavro.schemaless_reader(io.BytesIO(data[HEADER_BYTES:]), schema, None)), f"schema {number}"


@lru_cache(256)
def _avro_schema(registry: str | None, number: int) -> Any:
    import fastavro

    kind, text, references = _schema(registry, number)
    if kind != "AVRO":
        raise NoSchema(f"schema {number} is {kind}")
    named: dict[str, Any] = {}
    for _, each in references:
        fastavro.parse_schema(json.loads(each), named)
    return fastavro.parse_schema(json.loads(text), named)


def _protobuf(data: bytes, registry: str | None) -> tuple[str, str]:
    """Returns the message by its schema; without a schema its fields by number, as ``protoc --decode_raw`` does."""
    if registry is None or data[:1] != b"\0":
        return _pretty(raw_fields(data)), "without a schema: fields by number"
    from google.protobuf.json_format import MessageToJson

    number, (indexes, at) = schema_id_of(data), message_indexes(data)
    message = _protobuf_class(registry, number, indexes)()
    message.ParseFromString(data[at:])
    text: str = MessageToJson(message, ensure_ascii=False, preserving_proto_field_name=True)
    return text, f"schema {number}, {message.DESCRIPTOR.full_name}"


@lru_cache(256)
def _protobuf_class(registry: str, number: int, indexes: tuple[int, ...]) -> Any:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    from barnabas.registry.protobuf import FILE, parse

    kind, text, references = _schema(registry, number)
    if kind != "PROTOBUF":
        raise NoSchema(f"schema {number} is {kind}")
    pool = DescriptorPool()
    for each in parse(text, references).files.values():
        pool.Add(each)
    file = pool.FindFileByName(FILE)
    found = list(file.message_types_by_name.values())[indexes[0]]
    for index in indexes[1:]:
        found = found.nested_types[index]
    return GetMessageClass(found)


_AS: Final[Mapping[str, Callable[[bytes, str | None], tuple[str, str]]]] = {
    "text": _text, "json": _json, "avro": _avro, "protobuf": _protobuf, "hex": _hex,
}  # fmt: skip


# ------------------------------------------------------------------ schemas


def _schema(registry: str | None, number: int) -> Schema:
    """Returns a schema. :raises NoSchema: the registry does not have it, or there is no registry"""
    if registry is None:
        raise NoSchema("no schema registry is known")
    found = _schema_or_error(registry, number, int(time.monotonic() // MISSING_S))
    if isinstance(found, str):
        raise NoSchema(found)
    return found


@lru_cache(1024)
def _schema_or_error(registry: str, number: int, when: int) -> Schema | str:
    """Returns a schema, or why there is none, cached for each id, since many values may only resemble one with a
    schema.
    """
    from barnabas.cli.schemas import Client

    client = Client(registry)
    try:
        found = client("GET", f"/schemas/ids/{number}")
        references = tuple(_references(client, found, {}).items())
        return Schema(found.get("schemaType", "AVRO"), found["schema"], references)
    except click.ClickException as error:
        return error.format_message()


def _references(client: Any, schema: Mapping[str, Any], known: dict[str, str]) -> dict[str, str]:
    from urllib.parse import quote

    for each in schema.get("references") or ():
        if each["name"] not in known:
            path = f"/subjects/{quote(each['subject'], safe='')}/versions/{each['version']}"
            found = client("GET", path)
            _references(client, found, known)
            known[each["name"]] = found["schema"]
    return known


# ------------------------------------------------------------------ Protobuf without a schema


def raw_fields(data: bytes, depth: int = 0) -> list[dict[str, Any]]:
    """Returns the fields of a Protobuf message by their numbers. :raises Undecodable: the bytes are no message"""
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0 or kind not in (0, 1, 2, 5):
            raise Undecodable(f"no Protobuf field begins with {tag:#x}")
        if kind == 0:
            value, at = _varint(data, at)
            found.append({"field": number, "value": value})
            continue
        size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(data, at)
        if at + size > len(data):
            raise Undecodable("the message is cut")
        part, at = data[at : at + size], at + size
        found.append({"field": number, "value": _inner(part, depth) if kind == 2 else part.hex(" ")})
    return found


def _inner(part: bytes, depth: int) -> Any:
    """Returns the bytes of a field as text, as a message, or unchanged."""
    try:
        text = part.decode("utf-8")
        if not _has_controls(text):
            return text
    except ValueError:
        pass
    try:
        return raw_fields(part, depth + 1) if depth < 20 else part
    except Undecodable:
        return part


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise Undecodable("a number is cut or too long")
