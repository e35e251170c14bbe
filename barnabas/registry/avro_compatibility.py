"""Compares two Avro schemas: whether data written with one can be read with the other, and if not, why.

Knows nothing of subjects and levels. The rules are those of the specification's schema resolution; kinds and paths of
what is found are those of Java's ``SchemaCompatibility``.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.registry.avro import MISSING, AvroSchema, Field, Node

PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""By the reader's type, the other types of a writer that it can read."""

TEXTS: Final = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the {reader} schema does not match with "
    "the {writer} schema",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the {reader} schema does not match with the "
    "{writer} schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema is missing enum symbols '{info}' at path '{path}' in the "
    "{writer} schema",
    "MISSING_UNION_BRANCH": "The {reader} schema is missing a type inside a union field at path '{path}' in the "
    "{writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{info}' at path '{path}' in the {reader} schema has no default "
    "value and is missing in the {writer} schema",
}


class Break(NamedTuple):
    """One thing that the reader cannot read."""

    kind: str
    path: str
    info: str

    def description(self, reader: str, writer: str) -> str:
        text = TEXTS[self.kind].format(path=self.path, info=self.info, reader=reader, writer=writer)
        return f'{{errorType:"{self.kind}", description:"{text}", additionalInfo:"{self.info}"}}'


def breaks(reader: AvroSchema, writer: AvroSchema, reader_word: str, writer_word: str) -> list[str]:
    """Returns a text for each incompatibility; none if the reader can read everything that the writer writes."""
    found = dict.fromkeys(_Comparison().compare(reader.root, writer.root, "/"))
    return [each.description(reader_word, writer_word) for each in found]


class _Comparison:
    def __init__(self) -> None:
        self._pairs: set[tuple[int, int]] = set()  # those being compared: a type may contain itself

    def compare(self, reader: Node, writer: Node, path: str) -> list[Break]:
        pair = (id(reader), id(writer))
        if pair in self._pairs:
            return []
        self._pairs.add(pair)
        try:
            return list(self._compare(reader, writer, path))
        finally:
            self._pairs.remove(pair)

    def _compare(self, reader: Node, writer: Node, path: str) -> Iterator[Break]:
        if writer.kind == "union":
            for index, branch in enumerate(writer.branches):
                if reader.kind == "union":
                    if self.compare(reader, branch, path):
                        yield Break("MISSING_UNION_BRANCH", _under(path, str(index)), _lacking(branch))
                else:
                    yield from self.compare(reader, branch, path)
        elif reader.kind == "union":
            if all(self.compare(branch, writer, path) for branch in reader.branches):
                yield Break("MISSING_UNION_BRANCH", path, _lacking(writer))
        elif reader.kind == writer.kind:
            yield from self._of_same_kind(reader, writer, path)
        elif writer.kind not in PROMOTIONS.get(reader.kind, ()):
            info = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
            yield Break("TYPE_MISMATCH", path, info)

    def _of_same_kind(self, reader: Node, writer: Node, path: str) -> Iterator[Break]:
        if reader.kind in ("array", "map"):
            inner = "items" if reader.kind == "array" else "values"
            yield from self.compare(reader.branches[0], writer.branches[0], _under(path, inner))
            return
        if not reader.is_named:
            return
        if reader.short_name != writer.short_name and writer.name not in reader.aliases:
            yield Break("NAME_MISMATCH", _under(path, "name"), f"expected: {writer.name}")
        if reader.kind == "fixed" and reader.size != writer.size:
            info = f"expected: {writer.size}, found: {reader.size}"
            yield Break("FIXED_SIZE_MISMATCH", _under(path, "size"), info)
        elif reader.kind == "enum":
            missing = [each for each in writer.symbols if each not in reader.symbols]
            if missing and reader.default is MISSING:
                yield Break("MISSING_ENUM_SYMBOLS", _under(path, "symbols"), f"[{', '.join(missing)}]")
        for index, field in enumerate(reader.fields):
            yield from self._field(field, writer, _under(path, f"fields/{index}"))

    def _field(self, field: Field, writer: Node, path: str) -> Iterator[Break]:
        names = (field.name, *field.aliases)
        written = next((each for name in names for each in writer.fields if each.name == name), None)
        if written is not None:
            yield from self.compare(field.type, written.type, _under(path, "type"))
        elif field.default is MISSING and not (field.type.kind == "enum" and field.type.default is not MISSING):
            yield Break("READER_FIELD_MISSING_DEFAULT_VALUE", path, field.name)


def _under(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}"


def _lacking(writer: Node) -> str:
    return f"reader union lacking writer type: {writer.kind.upper()}"
