"""Compares two JSON Schemas: whether each value that one accepts is accepted by the other, and if not, why.

Knows nothing of subjects and levels. The kinds of differences, and which of them break, are those of Confluent's
``SchemaDiff``: the content model is open if additional properties are allowed, closed if not, and partially open if
they have a schema of their own.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeGuard

from barnabas.errors import InvalidRegularExpression
from barnabas.patterns import matcher
from barnabas.registry.json_schema import JsonSchema, Located

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")

#: Keyword; the kind if it is new, if the limit is stricter; whether a higher limit is stricter.
LIMITS: Final = (
    ("minLength", "MIN_LENGTH_ADDED", "MIN_LENGTH_INCREASED", True),
    ("maxLength", "MAX_LENGTH_ADDED", "MAX_LENGTH_DECREASED", False),
    ("minimum", "MINIMUM_ADDED", "MINIMUM_INCREASED", True),
    ("exclusiveMinimum", "EXCLUSIVE_MINIMUM_ADDED", "EXCLUSIVE_MINIMUM_INCREASED", True),
    ("maximum", "MAXIMUM_ADDED", "MAXIMUM_DECREASED", False),
    ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM_ADDED", "EXCLUSIVE_MAXIMUM_DECREASED", False),
    ("minItems", "MIN_ITEMS_ADDED", "MIN_ITEMS_INCREASED", True),
    ("maxItems", "MAX_ITEMS_ADDED", "MAX_ITEMS_DECREASED", False),
    ("minProperties", "MIN_PROPERTIES_ADDED", "MIN_PROPERTIES_INCREASED", True),
    ("maxProperties", "MAX_PROPERTIES_ADDED", "MAX_PROPERTIES_DECREASED", False),
)
NOTHING_BELOW: Final = frozenset(("minLength", "minItems", "minProperties"))
"""Limits without effect if they are 0."""

TEXTS: Final = {
    "TYPE_NARROWED": "A type at path '{path}' in the {reader} schema is narrower than that in the {writer} schema",
    "TYPE_CHANGED": "A type at path '{path}' in the {reader} schema is different to the type in the {writer} schema",
    "ENUM_ARRAY_NARROWED": "An enum at path '{path}' in the {reader} schema lacks values of the {writer} schema",
    "ENUM_ARRAY_CHANGED": "An enum at path '{path}' in the {reader} schema has no value of the {writer} schema",
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "The {reader} schema has a required property at path '{path}' "
    "that the {writer} schema, whose content model is not open, does not have",
    "REQUIRED_ATTRIBUTE_ADDED": "The {reader} schema requires a property at path '{path}' that is not required in the "
    "{writer} schema",
    "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "The {reader} schema has a property at path '{path}', for which the open "
    "content model of the {writer} schema accepts any value",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "The {reader} schema has a property at path '{path}' "
    "that accepts less than what the {writer} schema accepts for additional ones",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "The {reader} schema, whose content model is closed, lacks a "
    "property at path '{path}' of the {writer} schema",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "What the {reader} schema accepts for additional "
    "properties is less than what the {writer} schema accepts for the property at path '{path}'",
    "ADDITIONAL_PROPERTIES_REMOVED": "The {reader} schema accepts no additional properties at path '{path}', the "
    "{writer} schema does",
    "ADDITIONAL_PROPERTIES_NARROWED": "Additional properties at path '{path}' are narrower in the {reader} schema than "
    "in the {writer} schema",
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": "The {reader} schema has an item at path '{path}', for which the {writer} "
    "schema accepts any value",
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": "The {reader} schema accepts no item at path '{path}', the {writer} "
    "schema does",
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": "The {reader} schema accepts less at path '{path}' than what the {writer} "
    "schema combines there",
}
OTHER_TEXT: Final = "The keyword at path '{path}' in the {reader} schema accepts less than in the {writer} schema"


class Difference(NamedTuple):
    """One thing that the writer's schema accepts, and the reader's does not."""

    kind: str
    path: str

    def description(self, reader: str, writer: str) -> str:
        text = TEXTS.get(self.kind, OTHER_TEXT).format(path=self.path, reader=reader, writer=writer)
        return f'{{errorType:"{self.kind}", description:"{text}"}}'


def breaks(reader: JsonSchema, writer: JsonSchema, reader_word: str, writer_word: str) -> list[str]:
    """Returns a text for each incompatibility; none if the reader accepts everything that the writer accepts."""
    found = dict.fromkeys(_Comparison().compare(reader.root, writer.root, "#/"))
    return [each.description(reader_word, writer_word) for each in found]


class _Comparison:
    def __init__(self) -> None:
        self._pairs: set[tuple[int, int]] = set()  # those being compared: a schema may contain itself

    def compare(self, reader: Located, writer: Located, path: str) -> list[Difference]:
        reader, writer = reader.resolved(), writer.resolved()
        pair = (id(reader.schema), id(writer.schema))
        if (reader.schema == writer.schema and reader.documents is writer.documents) or pair in self._pairs:
            return []
        self._pairs.add(pair)
        try:
            return list(self._compare(reader, writer, path))
        finally:
            self._pairs.remove(pair)

    def _compare(self, reader: Located, writer: Located, path: str) -> Iterator[Difference]:
        if writer.schema is False or accepts_all(reader.schema):
            return
        if reader.schema is False:
            yield Difference("TYPE_NARROWED", path)
            return
        here = writer if isinstance(writer.schema, dict) else writer.under({})
        yield from self._types(reader, here, path)
        yield from _values(reader.schema, here.schema, path)
        yield from _limits(reader.schema, here.schema, path)
        yield from self._object(reader, here, path)
        yield from self._array(reader, here, path)
        yield from self._combined(reader, here, path)

    # ------------------------------------------------------------ types

    def _types(self, reader: Located, writer: Located, path: str) -> Iterator[Difference]:
        wanted, given = types(reader.schema), types(writer.schema)
        if given <= wanted or (_combines(writer.schema) and given == set(TYPES)):
            return
        yield Difference("TYPE_NARROWED" if wanted & given else "TYPE_CHANGED", path)

    # ------------------------------------------------------------ objects

    def _object(self, reader: Located, writer: Located, path: str) -> Iterator[Difference]:
        if "object" not in types(reader.schema) & types(writer.schema):
            return
        own, theirs = _map(reader, "properties"), _map(writer, "properties")
        required = (
            set(writer.schema.get("required") or ()) if isinstance(writer.schema.get("required"), list) else set()
        )
        for name in _names(reader.schema.get("required")):
            if name not in required and not _has_default(own.get(name)):
                kind = "REQUIRED_ATTRIBUTE_ADDED"
                if name not in theirs and not accepts_all(_additional(writer.schema)):
                    kind = "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
                yield Difference(kind, f"{path}properties/{name}" if name in own else f"{path}required/{name}")
        for name, schema in own.items():
            where = f"{path}properties/{name}"
            if name in theirs:
                yield from self.compare(reader.under(schema), writer.under(theirs[name]), f"{where}/")
            else:
                yield from self._added(reader.under(schema), writer, name, where)
        for name, schema in theirs.items():
            if name not in own:
                yield from self._removed(reader, writer.under(schema), name, f"{path}properties/{name}")
        yield from self._additional(reader, writer, path)

    def _added(self, schema: Located, writer: Located, name: str, path: str) -> Iterator[Difference]:
        for_others = _for_name(writer.schema, name)
        if for_others is False or not self.compare(schema, writer.under(for_others), f"{path}/"):
            return
        if accepts_all(for_others):
            yield Difference("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path)
        else:
            yield Difference("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)

    def _removed(self, reader: Located, schema: Located, name: str, path: str) -> Iterator[Difference]:
        if schema.schema is False:
            return
        for_others = _for_name(reader.schema, name)
        if for_others is False:
            yield Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
        elif self.compare(reader.under(for_others), schema, f"{path}/"):
            yield Difference("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)

    def _additional(self, reader: Located, writer: Located, path: str) -> Iterator[Difference]:
        own, theirs = _additional(reader.schema), _additional(writer.schema)
        where = f"{path}additionalProperties"
        if own is False and theirs is not False:
            yield Difference("ADDITIONAL_PROPERTIES_REMOVED", where)
        elif theirs is not False and self.compare(reader.under(own), writer.under(theirs), f"{where}/"):
            yield Difference("ADDITIONAL_PROPERTIES_NARROWED", where)
        patterns = _map(writer, "patternProperties")
        for pattern, schema in _map(reader, "patternProperties").items():
            given = patterns.get(pattern, theirs)
            yield from self.compare(reader.under(schema), writer.under(given), f"{path}patternProperties/{pattern}/")

    # ------------------------------------------------------------ arrays

    def _array(self, reader: Located, writer: Located, path: str) -> Iterator[Difference]:
        if "array" not in types(reader.schema) & types(writer.schema):
            return
        (own, own_rest), (theirs, their_rest) = _items(reader.schema), _items(writer.schema)
        for index in range(max(len(own), len(theirs))):
            wanted = own[index] if index < len(own) else own_rest
            given = theirs[index] if index < len(theirs) else their_rest
            found = self.compare(reader.under(wanted), writer.under(given), f"{path}items/{index}/")
            if found and index >= len(theirs) and accepts_all(given):
                yield Difference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", f"{path}items/{index}")
            elif found and wanted is False:
                yield Difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", f"{path}items/{index}")
            else:
                yield from found
        yield from self.compare(reader.under(own_rest), writer.under(their_rest), f"{path}items/")

    # ------------------------------------------------------------ combinations

    def _combined(self, reader: Located, writer: Located, path: str) -> Iterator[Difference]:
        for name, covers in (("allOf", _all_of), ("anyOf", _any_of), ("oneOf", _any_of)):
            wanted = reader.schema.get(name)
            if wanted and not covers(self, reader, writer, name, path):
                yield Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{path}{name}")
        if reader.schema.get("not") not in (None, False) and reader.schema.get("not") != writer.schema.get("not"):
            own, theirs = reader.under(reader.schema["not"]), writer.under(writer.schema.get("not", False))
            # A schema that ``not`` forbids now must have been forbidden before.
            if self.compare(theirs, own, f"{path}not/"):
                yield Difference("NOT_TYPE_EXTENDED", f"{path}not")
        if not _combines(reader.schema):
            yield from self._branches_of_writer(reader, writer, path)

    def _branches_of_writer(self, reader: Located, writer: Located, path: str) -> Iterator[Difference]:
        """Yields a difference if the writer has a combination (``allOf``, ``anyOf``, ``oneOf``) and the reader, which
        has none, does not accept it.
        """
        for name in ("anyOf", "oneOf"):
            branches = [writer.under(each) for each in writer.schema.get(name) or ()]
            if any(self.compare(reader, each, f"{path}{name}/") for each in branches):
                yield Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{path}{name}")
        branches = [writer.under(each) for each in writer.schema.get("allOf") or ()]
        if branches and all(self.compare(reader, each, f"{path}allOf/") for each in branches):
            yield Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{path}allOf")


Covers = Callable[[_Comparison, Located, Located, str, str], bool]


def _all_of(comparison: _Comparison, reader: Located, writer: Located, name: str, path: str) -> bool:
    """Returns whether each schema that the reader requires is satisfied by one of the writer."""
    given = [writer.under(each) for each in writer.schema.get(name) or ()] or [_plain(writer)]
    return all(
        any(not comparison.compare(reader.under(each), other, f"{path}{name}/") for other in given)
        for each in reader.schema[name]
    )


def _any_of(comparison: _Comparison, reader: Located, writer: Located, name: str, path: str) -> bool:
    """Returns whether each alternative of the writer is accepted by one of the reader."""
    choices = writer.schema.get("anyOf") or writer.schema.get("oneOf")
    given = [writer.under(each) for each in choices] if choices else [writer]
    return all(
        any(not comparison.compare(reader.under(each), other, f"{path}{name}/") for each in reader.schema[name])
        for other in given
    )


def _plain(located: Located) -> Located:
    return located.under({name: value for name, value in located.schema.items() if name not in ("anyOf", "oneOf")})


def _combines(schema: Any) -> bool:
    return any(schema.get(name) for name in ("allOf", "anyOf", "oneOf"))


# ---------------------------------------------------------------- what a schema says


def accepts_all(schema: Any) -> bool:
    """Returns whether any value is accepted. What only describes a value does not count."""
    return schema is True or (
        isinstance(schema, dict)
        and not any(name for name in schema if name not in ("title", "description", "$id", "id", "$schema", "default",
                                                            "examples", "$comment", "$defs", "definitions"))
    )  # fmt: skip


def types(schema: Any) -> set[str]:
    """Returns the types that a schema accepts; each integer is a number."""
    if not isinstance(schema, dict) or "type" not in schema:
        return set(TYPES)
    given = schema["type"]
    found = set(given) if isinstance(given, list) else {given}
    return found | {"integer"} if "number" in found else found


def _values(reader: dict[str, Any], writer: dict[str, Any], path: str) -> Iterator[Difference]:
    wanted, given = _enum(reader), _enum(writer)
    if wanted is not None and (given is None or any(each not in wanted for each in given)):
        has_some = given is not None and any(each in wanted for each in given)
        yield Difference("ENUM_ARRAY_NARROWED" if has_some else "ENUM_ARRAY_CHANGED", f"{path}enum")


def _enum(schema: dict[str, Any]) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _limits(reader: dict[str, Any], writer: dict[str, Any], path: str) -> Iterator[Difference]:
    for name, added, stricter, higher in LIMITS:
        wanted, given = reader.get(name), writer.get(name)
        if not _is_number(wanted) or (wanted == 0 and name in NOTHING_BELOW):
            continue
        if not _is_number(given):
            yield Difference(added, f"{path}{name}")
        elif (wanted > given) if higher else (wanted < given):
            yield Difference(stricter, f"{path}{name}")
    for name, added, changed in (("pattern", "PATTERN_ADDED", "PATTERN_CHANGED"),):
        if name in reader and reader[name] != writer.get(name):
            yield Difference(added if name not in writer else changed, f"{path}{name}")
    if reader.get("uniqueItems") and not writer.get("uniqueItems"):
        yield Difference("UNIQUE_ITEMS_ADDED", f"{path}uniqueItems")
    wanted, given = reader.get("multipleOf"), writer.get("multipleOf")
    if _is_number(wanted) and (not _is_number(given) or given % wanted):
        yield Difference("MULTIPLE_OF_ADDED" if given is None else "MULTIPLE_OF_CHANGED", f"{path}multipleOf")
    needed = {**_dependencies(writer)}
    for name, others in _dependencies(reader).items():
        if not set(others) <= set(needed.get(name, ())):
            kind = "DEPENDENCY_ARRAY_EXTENDED" if name in needed else "DEPENDENCY_ARRAY_ADDED"
            yield Difference(kind, f"{path}dependencies/{name}")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _dependencies(schema: dict[str, Any]) -> dict[str, list[str]]:
    both = {**(schema.get("dependencies") or {}), **(schema.get("dependentRequired") or {})}
    return {name: others for name, others in both.items() if isinstance(others, list)}


def _names(required: Any) -> list[str]:
    return required if isinstance(required, list) else []


def _map(located: Located, name: str) -> dict[str, Any]:
    found = located.schema.get(name)
    return found if isinstance(found, dict) else {}


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _additional(schema: dict[str, Any]) -> Any:
    found = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
    return True if found is None else found


def _for_name(schema: dict[str, Any], name: str) -> Any:
    """Returns the schema for a property that is not named."""
    for pattern, each in (schema.get("patternProperties") or {}).items():
        with contextlib.suppress(InvalidRegularExpression):
            if matcher(f".*(?:{pattern}).*")(name):
                return each
    return _additional(schema)


def _items(schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """Returns the schemas of the first items, and that of all others."""
    items = schema.get("items", True)
    if "prefixItems" in schema:
        return schema["prefixItems"], items
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return [], items
