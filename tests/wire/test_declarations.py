"""The declarations, compared with Apache's own schemas in the kafka-python wheel.

The schemas are read as files; no code of kafka-python runs here.
"""

import importlib.util
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.wire.headers import RequestHeader, ResponseHeader
from barnabas.wire.message import Message, Request, Response
from barnabas.wire.messages import MODULES, declared
from barnabas.wire.schema import MISSING, Struct, Versions
from barnabas.wire.types import Fixed

CLASSES = {**declared(), "RequestHeader": RequestHeader, "ResponseHeader": ResponseHeader}
SPEC = importlib.util.find_spec("kafka")
assert SPEC is not None
assert SPEC.origin is not None
SCHEMAS = pathlib.Path(SPEC.origin).parent / "protocol/schemas/resources"
SHIPPED = sorted(set(CLASSES) & {path.stem for path in SCHEMAS.glob("*.json")})
#: Names that differ between Apache Kafka 4.4 and the schemas of the wheel.
RENAMED = {"TxnOffsetCommitRequest": {"generation_id": "generation_id_or_member_epoch"}}
#: The defaults of types, for fields without a default in the schemas.
DEFAULTS: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": bytes(16),
    "float64": 0.0,
}
KINDS = {"b": "int8", "h": "int16", "i": "int32", "q": "int64", "H": "uint16", "I": "uint32"}
KINDS |= {"?": "bool", "d": "float64", "16s": "uuid", "text": "string"}


def schema(name: str) -> Any:
    return json.loads(re.sub(r"(?m)^\s*//.*$", "", (SCHEMAS / f"{name}.json").read_text()))


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def within(versions: str | None, version: int) -> bool:
    return versions is not None and version in Versions.parse(versions)


def their_default(field: dict[str, Any], kind: str, is_array: bool) -> Any:
    text = field.get("default")
    if text == "null":
        return None
    if is_array:
        return ()
    if text is None:
        return DEFAULTS.get(kind, 0)
    if kind == "bool":
        return str(text).lower() == "true"
    return text if kind == "string" else int(str(text), 0)


def theirs(fields: list[dict[str, Any]], version: int, common: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for field in fields:
        if within(field["versions"], version):
            kind = field["type"].removeprefix("[]")
            is_array = kind != field["type"]
            inner = field.get("fields") or common.get(kind)
            yield {
                "name": snake_case(field["name"]),
                "kind": kind,
                "is_array": is_array,
                "is_nullable": within(field.get("nullableVersions"), version),
                "tag": field.get("tag") if within(field.get("taggedVersions"), version) else None,
                "default": None if inner and not is_array else their_default(field, kind, is_array),
                "fields": list(theirs(inner, version, common)) if inner else None,
                "ever_compact": field.get("flexibleVersions") != "none",
            }


def ours(cls: type[Struct], version: int) -> Iterator[dict[str, Any]]:
    for field in cls.wire_fields():
        if version in field.versions:
            is_struct = isinstance(field.kind, type)
            yield {
                "name": field.name,
                "kind": field.kind.__name__ if isinstance(field.kind, type) else kind_of(field.kind),
                "is_array": field.is_array,
                "is_nullable": version in field.nullable,
                "tag": field.tag,
                "default": None if is_struct and not field.is_array else field.default,
                "fields": list(ours(field.kind, version)) if isinstance(field.kind, type) else None,
                "ever_compact": getattr(field.kind, "may_be_compact", True),
            }


def kind_of(kind: Any) -> str:
    name = kind.format if isinstance(kind, Fixed) else kind.shape
    return KINDS.get(name, name)


def agree(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Checks that the fields are equal; a default that we do not have, because it is required, is not compared."""
    assert [field["name"] for field in ours] == [field["name"] for field in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        if mine["default"] is MISSING or mine["name"] == "error_message":
            mine = {**mine, "default": other["default"]}
        assert {**mine, "fields": None} == {**other, "fields": None}
        if mine["fields"] is not None:
            agree(mine["fields"], other["fields"])


@pytest.mark.parametrize("name", SHIPPED)
def test_declared_as_apache_does(name: str) -> None:
    cls, spec = CLASSES[name], schema(name)
    common = {struct["name"]: struct["fields"] for struct in spec.get("commonStructs", [])}
    both = [version for version in every_version(cls) if version <= Versions.parse(spec["validVersions"]).last]
    assert both
    for version in both:
        expected = list(theirs(spec["fields"], version, common))
        for field in expected:
            field["name"] = RENAMED.get(name, {}).get(field["name"], field["name"])
        agree(list(ours(cls, version)), expected)
        assert (version in cls.flexible) == within(spec["flexibleVersions"], version)
    if issubclass(cls, Request | Response):
        request = cls if issubclass(cls, Request) else cls.request
        assert request.api_key == spec["apiKey"]


def every_version(cls: type[Message]) -> range:
    return range(cls.versions.first, cls.versions.last + 1)


def test_what_the_schemas_know_is_known() -> None:
    """The check above must cover the APIs: 52 of them, both ways, and the headers."""
    assert len([name for name in SHIPPED if name.endswith(("Request", "Response"))]) == 2 * 52


def test_every_module_is_listed() -> None:
    import barnabas.wire.messages as messages

    there = {path.stem for path in pathlib.Path(messages.__path__[0]).glob("*.py")}
    assert there - {"__init__"} == set(MODULES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_names_are_snake_case_and_ranges_within_the_message(name: str) -> None:
    cls = CLASSES[name]
    assert cls.versions.first <= cls.versions.last
    for version in every_version(cls):
        for field in flat(list(ours(cls, version))):
            assert field["name"] == snake_case(field["name"])
            assert field["tag"] is None or version in cls.flexible


def flat(fields: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for field in fields:
        yield field
        yield from flat(field["fields"] or [])
