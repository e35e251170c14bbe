"""Avro schemas: parses, validates and prints them.

Knows nothing of compatibility and subjects. fastavro decides whether a schema is valid; this module keeps the parts
that the compatibility rules need. The printed form is that of Java's ``Schema.toString``, which Confluent's registry
stores.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.registry.errors import error

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
OWN_FIELDS: Final = frozenset(
    ("type", "name", "namespace", "doc", "fields", "aliases", "symbols", "default", "size", "items", "values", "order")
)
ORDERS: Final = ("ascending", "descending", "ignore")
MISSING: Final = object()
"""The default of a field that has none; None is the default null."""


@dataclass(eq=False)
class Field:
    """A field of a record."""

    name: str
    type: "Node"
    default: Any = MISSING
    doc: str | None = None
    order: str | None = None
    aliases: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Node:
    """A type."""

    kind: str
    name: str = ""  #: with its namespace
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    fields: list[Field] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    default: Any = MISSING  #: of an enum
    size: int = 0
    branches: list["Node"] = field(default_factory=list)  #: of a union; the one type of an array or map
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        return bool(self.name)

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


class AvroSchema:
    """A schema, with the schemas that it refers to."""

    kind = "AVRO"

    def __init__(self, root: Node, known: frozenset[str]) -> None:
        self.root = root
        self._known = known

    @property
    def canonical(self) -> str:
        return json.dumps(_print(self.root, "", set(self._known)), separators=(",", ":"), ensure_ascii=False)

    @property
    def normalized(self) -> str:
        """Returns the form in which custom attributes are sorted."""
        return json.dumps(
            _print(self.root, "", set(self._known), is_sorted=True), separators=(",", ":"), ensure_ascii=False
        )

    def formatted(self, name: str) -> str:
        """Returns the text; as ``resolved`` with the types of other schemas in it."""
        if name != "resolved":
            return self.canonical
        return json.dumps(_print(self.root, "", set()), separators=(",", ":"), ensure_ascii=False)


def parse(text: str, references: Sequence[tuple[str, str]]) -> AvroSchema:
    """Returns the schema of a text. :raises RegistryError: the text is not a valid schema

    :param references: name and text of the schemas that it may refer to, each after those that it needs
    """
    from fastavro.schema import SchemaParseException, parse_schema

    named: dict[str, Any] = {}
    reader = Reader()
    try:
        for _, each in references:
            given = json.loads(each)
            parse_schema(given, named, _write_hint=False)
            reader.read(given, "")
        known = frozenset(reader.named)
        given = _loaded(text)
        parse_schema(given, named, _write_hint=False)
        return AvroSchema(reader.read(given, ""), known)
    except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
        reason = f"no field {why}" if isinstance(why, KeyError) else str(why)
        raise error("invalid_schema", f"{text[:500]} is no Avro schema: {reason}") from None


def _loaded(text: str) -> Any:
    try:
        loaded = json.loads(text)
    except ValueError:
        if text in PRIMITIVES:
            return text
        raise
    if not isinstance(loaded, str | list | dict):
        raise ValueError("it is neither a name, nor a list, nor an object")
    return loaded


class Reader:
    """Makes types from JSON; named types can be referred to afterwards."""

    def __init__(self) -> None:
        self.named: dict[str, Node] = {}

    def read(self, given: Any, namespace: str) -> Node:
        """Returns the type. :raises ValueError: the JSON is not a valid type"""
        if isinstance(given, str):
            return self._named(given, namespace)
        if isinstance(given, list):
            return self._union(given, namespace)
        if not isinstance(given, dict):
            raise ValueError(f"{given!r} is no type")
        kind = given["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, namespace)
        other = {name: value for name, value in given.items() if name not in OWN_FIELDS}
        match kind:
            case "record" | "error":
                return self._record(given, kind, namespace, other)
            case "enum":
                return self._enum(given, namespace, other)
            case "fixed":
                size = given["size"]
                if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                    raise ValueError(f"{size!r} is no size")
                node = self._new(given, kind, namespace, other)
                node.size = size
                return node
            case "array" | "map":
                of = self.read(given["items" if kind == "array" else "values"], namespace)
                return Node(kind, branches=[of], other=other)
        node = self._named(kind, namespace)
        return Node(kind, other=other) if kind in PRIMITIVES else node

    def _named(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVES:
            return Node(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.named.get(full) or self.named.get(name)
        if found is None:
            raise ValueError(f"the type {full} is not defined")
        return found

    def _union(self, given: list[Any], namespace: str) -> Node:
        branches = [self.read(each, namespace) for each in given]
        names = [each.name or each.kind for each in branches]
        if "union" in names:
            raise ValueError("a union contains a union")
        if twice := sorted({each for each in names if names.count(each) > 1}):
            raise ValueError(f"a union contains {twice[0]} twice")
        return Node("union", branches=branches)

    def _new(self, given: dict[str, Any], kind: str, namespace: str, other: dict[str, Any]) -> Node:
        name, own = given["name"], given.get("namespace", namespace)
        full = name if "." in name or not own else f"{own}.{name}"
        if not NAME.fullmatch(full):
            raise ValueError(f"{full!r} is no name")
        if full in self.named:
            raise ValueError(f"{full} is defined twice")
        around = full.rpartition(".")[0]
        aliases = tuple(
            each if "." in each or not around else f"{around}.{each}" for each in given.get("aliases") or ()
        )
        node = self.named[full] = Node(kind, full, given.get("doc"), aliases, other=other)
        return node

    def _enum(self, given: dict[str, Any], namespace: str, other: dict[str, Any]) -> Node:
        node = self._new(given, "enum", namespace, other)
        node.symbols = tuple(given["symbols"])
        node.default = given.get("default", MISSING)
        if len(set(node.symbols)) < len(node.symbols):
            raise ValueError(f"the enum {node.name} has a symbol twice")
        for symbol in node.symbols:
            if not NAME.fullmatch(symbol) or "." in symbol:
                raise ValueError(f"{symbol!r} is no name of a symbol")
        if node.default is not MISSING and node.default not in node.symbols:
            raise ValueError(f"the default {node.default!r} of the enum {node.name} is none of its symbols")
        return node

    def _record(self, given: dict[str, Any], kind: str, namespace: str, other: dict[str, Any]) -> Node:
        node = self._new(given, kind, namespace, other)
        inner = node.name.rpartition(".")[0]
        if not isinstance(given["fields"], list):
            raise ValueError(f"the fields of the record {node.name} are no list")
        for each in given["fields"]:
            name = each["name"]
            if not NAME.fullmatch(name) or "." in name:
                raise ValueError(f"{name!r} is no name of a field")
            if any(known.name == name for known in node.fields):
                raise ValueError(f"the record {node.name} has a field {name} twice")
            order = each.get("order")
            if order is not None and order not in ORDERS:
                raise ValueError(f"the order {order!r} of the field {name} is none of {', '.join(ORDERS)}")
            made = Field(
                name,
                self.read(each["type"], inner),
                each.get("default", MISSING),
                each.get("doc"),
                order,
                tuple(each.get("aliases") or ()),
                {name: value for name, value in each.items() if name not in OWN_FIELDS},
            )
            if made.default is not MISSING and not is_default(made.default, made.type):
                wanted = made.type.name or made.type.kind
                raise ValueError(f"the default {json.dumps(made.default)} of the field {name} is no {wanted}")
            node.fields.append(made)
        return node


INTEGERS: Final = {"int": 1 << 31, "long": 1 << 63}


def is_default(value: Any, node: Node) -> bool:
    """Returns whether a value of JSON may be the default of a field of that type: for a union, of any of its types."""
    match node.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = INTEGERS[node.kind]
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double":
            return isinstance(value, int | float | str) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "bytes":
            return isinstance(value, str) and all(ord(each) < 256 for each in value)
        case "fixed":
            return isinstance(value, str) and len(value) == node.size
        case "enum":
            return value in node.symbols
        case "array":
            return isinstance(value, list) and all(is_default(each, node.branches[0]) for each in value)
        case "map":
            return isinstance(value, dict) and all(is_default(each, node.branches[0]) for each in value.values())
        case "union":
            return any(is_default(value, each) for each in node.branches)
    return isinstance(value, dict) and all(
        is_default(value.get(each.name, each.default), each.type)
        for each in node.fields
        if each.name in value or each.default is MISSING
    )


# ---------------------------------------------------------------- printing


def _print(node: Node, namespace: str, printed: set[str], *, is_sorted: bool = False) -> Any:
    """Returns a type as JSON; a named one in full only for the first time.

    :param namespace: the one around it, which is left out of names
    """
    other = dict(sorted(node.other.items())) if is_sorted else dict(node.other)
    match node.kind:
        case "union":
            return [_print(each, namespace, printed, is_sorted=is_sorted) for each in node.branches]
        case "array" | "map":
            of = "items" if node.kind == "array" else "values"
            inner = _print(node.branches[0], namespace, printed, is_sorted=is_sorted)
            return {"type": node.kind, of: inner, **other}
        case kind if kind in PRIMITIVES:
            return {"type": kind, **other} if other else kind
    around = node.name.rpartition(".")[0]
    if node.name in printed:
        return node.short_name if around == namespace else node.name
    printed.add(node.name)
    fields: dict[str, Any] = {"type": node.kind, "name": node.short_name}
    if around != namespace:
        fields["namespace"] = around
    if node.doc is not None:
        fields["doc"] = node.doc
    if node.kind in ("record", "error"):
        fields["fields"] = [_print_field(each, around, printed, is_sorted) for each in node.fields]
    elif node.kind == "enum":
        fields["symbols"] = list(node.symbols)
        if node.default is not MISSING:
            fields["default"] = node.default
    else:
        fields["size"] = node.size
    fields |= other
    if node.aliases:
        fields["aliases"] = [each.removeprefix(f"{around}.") if around else each for each in node.aliases]
    return fields


def _print_field(field: Field, namespace: str, printed: set[str], is_sorted: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": field.name,
        "type": _print(field.type, namespace, printed, is_sorted=is_sorted),
    }
    if field.doc is not None:
        fields["doc"] = field.doc
    if field.default is not MISSING:
        fields["default"] = field.default
    if field.order is not None and field.order != "ascending":
        fields["order"] = field.order
    if field.aliases:
        fields["aliases"] = list(field.aliases)
    return {**fields, **(dict(sorted(field.other.items())) if is_sorted else field.other)}
