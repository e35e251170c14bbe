"""JSON Schemas: parses them, checks them against their metaschema, and resolves references.

Knows nothing of compatibility and subjects. ``$schema`` names the draft, from 4 to 2020-12; without it, draft 7
applies, as in Confluent's registry.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from barnabas.registry.errors import error

Schema = Any  # an object, or True or False

SUBSCHEMAS: Final = (
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
LISTS_OF_SUBSCHEMAS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
MAPS_OF_SUBSCHEMAS: Final = (
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
)


PROPERTY_OF_CHARACTERS: Final = re.compile(r"\\[pP]\{[^}]*\}")
NAMED_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z_])")


def is_pattern(value: object) -> bool:
    """Returns whether a value may be a pattern; what is no text is the metaschema's to refuse.

    :raises re.error: it is not a valid regular expression of ECMA-262
    """
    if isinstance(value, str):  # Python spells these two differently
        re.compile(NAMED_GROUP.sub("(?P<", PROPERTY_OF_CHARACTERS.sub(r"\\w", value)))
    return True


class Located:
    """A schema within a document, whose references can be resolved."""

    def __init__(self, schema: Schema, base: str, documents: dict[str, Schema]) -> None:
        self.base = base
        self.documents = documents  #: by URI
        self.schema = schema

    def under(self, schema: Schema) -> "Located":
        """Returns a schema within this one."""
        return Located(schema, self.base, self.documents)

    def resolved(self) -> "Located":
        """Returns the target of a chain of ``$ref``; the schema itself if it has none.

        :raises ValueError: it refers to nothing, or to itself
        """
        found, seen = self, set()
        while isinstance(found.schema, dict) and isinstance(found.schema.get("$ref"), str):
            target = urljoin(found.base, found.schema["$ref"])
            if target in seen:
                raise ValueError(f"{target} refers to itself")
            seen.add(target)
            found = found.at(target)
        return found

    def at(self, target: str) -> "Located":
        """Returns the schema at a URI. :raises ValueError: there is none"""
        if target in self.documents:
            return Located(self.documents[target], target, self.documents)
        uri, fragment = urldefrag(target)
        if uri not in self.documents:
            raise ValueError(f"{target} is not among the references")
        schema = self.documents[uri]
        if fragment and not fragment.startswith("/"):
            raise ValueError(f"{target} names no part of the schema")
        for part in fragment.split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            try:
                schema = schema[int(name)] if isinstance(schema, list) else schema[name]
            except (KeyError, IndexError, ValueError, TypeError):
                raise ValueError(f"{target} does not exist") from None
        return Located(schema, uri, self.documents)


class JsonSchema:
    """A schema, with the schemas that it refers to."""

    kind = "JSON"

    def __init__(self, schema: Schema, root: Located) -> None:
        self._schema = schema
        self.root = root

    @property
    def canonical(self) -> str:
        return json.dumps(self._schema, separators=(",", ":"), ensure_ascii=False)

    @property
    def normalized(self) -> str:
        return json.dumps(self._schema, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    def formatted(self, name: str) -> str:
        return self.canonical


def parse(text: str, references: Sequence[tuple[str, str]]) -> JsonSchema:
    """Returns the schema of a text. :raises RegistryError: it is not valid, or a reference cannot be resolved

    :param references: name and text of the schemas that it may refer to; the name is the URI
    """
    from jsonschema import FormatChecker, SchemaError, validators

    documents: dict[str, Schema] = {}
    try:
        for name, each in references:
            _add(documents, name, json.loads(each))
        schema = json.loads(text)
        if not isinstance(schema, dict | bool):
            raise ValueError("it is neither an object nor a boolean")
        validator = validators.validator_for(schema, default=validators.Draft7Validator)
        formats = FormatChecker(())
        formats.checks("regex", re.error)(is_pattern)
        validator.check_schema(schema, format_checker=formats)
        base = _add(documents, "", schema)
        root = Located(schema, base, documents)
        _check_references(root)
    except SchemaError as why:
        where = "/".join(map(str, why.absolute_path))
        raise error("invalid_schema", f"{text[:500]} is no JSON Schema: {why.message} (at /{where})") from None
    except (ValueError, RecursionError) as why:
        raise error("invalid_schema", f"{text[:500]} is no JSON Schema: {why}") from None
    return JsonSchema(schema, root)


def _add(documents: dict[str, Schema], name: str, schema: Schema) -> str:
    """Adds a document under its name and its ids. Returns the URI that its references are relative to."""
    documents[name] = schema
    own = _id(schema)
    base = urldefrag(urljoin(name, own))[0] if own else name
    documents[base] = schema
    _add_inner(documents, base, schema)
    return base


def _add_inner(documents: dict[str, Schema], base: str, schema: Schema) -> None:
    for each in subschemas(schema):
        inner = base
        if isinstance(each, dict):
            if own := _id(each):
                target = urljoin(base, own)
                documents.setdefault(target, each)
                inner = target if not own.startswith("#") else base
            if isinstance(anchor := each.get("$anchor"), str):
                documents.setdefault(f"{base}#{anchor}", each)
        _add_inner(documents, inner, each)


def _id(schema: Schema) -> str:
    found = (schema.get("$id") or schema.get("id")) if isinstance(schema, dict) else None
    return found if isinstance(found, str) else ""


def subschemas(schema: Schema) -> list[Schema]:
    """Returns the schemas that are directly within a schema."""
    if not isinstance(schema, dict):
        return []
    found = [schema[name] for name in SUBSCHEMAS if isinstance(schema.get(name), dict | bool)]
    for name in LISTS_OF_SUBSCHEMAS:
        if isinstance(schema.get(name), list):
            found += schema[name]
    for name in MAPS_OF_SUBSCHEMAS:
        if isinstance(schema.get(name), dict):
            found += [each for each in schema[name].values() if isinstance(each, dict | bool)]
    return found


def _check_references(located: Located) -> None:
    """Checks that all references of a document can be resolved. :raises ValueError: one cannot"""
    schema = located.schema
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and not reference.startswith(
            ("http://json-schema.org/", "https://json-schema.org/")
        ):
            located.resolved()
        own = _id(schema)
        if own and not own.startswith("#"):
            located = Located(schema, urljoin(located.base, own), located.documents)
    for each in subschemas(schema):
        _check_references(located.under(each))
