"""Compares two Protobuf schemas: whether data written with one can be read with the other, and if not, why.

Knows nothing of subjects and levels. The rules are those of the language guide's "Updating A Message Type"; the kinds
of differences, and which of them break, are those of Confluent's ``SchemaDiff``.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from barnabas.registry.protobuf import ProtobufSchema
from barnabas.registry.protobuf_text import REPEATED, REQUIRED, SCALARS

SAME_ON_THE_WIRE: Final = (
    frozenset(("int32", "uint32", "int64", "uint64", "bool", "enum")),
    frozenset(("sint32", "sint64")),
    frozenset(("string", "bytes")),
    frozenset(("fixed32", "sfixed32")),
    frozenset(("fixed64", "sfixed64")),
)
LENGTH_DELIMITED: Final = frozenset(("string", "bytes", "message"))

TEXTS: Final = {
    "PACKAGE_CHANGED": "The package of the {reader} schema is not that of the {writer} schema",
    "MESSAGE_REMOVED": "The {reader} schema lacks the message at path '{path}' of the {writer} schema",
    "FIELD_KIND_CHANGED": "The type of the field at path '{path}' in the {reader} schema does not match that in the "
    "{writer} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of the field at path '{path}' in the {reader} schema does not match that in "
    "the {writer} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of the field at path '{path}' in the {reader} schema is another than in the "
    "{writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label of the numeric field at path '{path}' in the {reader} schema does not "
    "match that in the {writer} schema",
    "REQUIRED_FIELD_ADDED": "The {reader} schema requires a field at path '{path}' that the {writer} schema lacks",
    "REQUIRED_FIELD_REMOVED": "The {reader} schema lacks a field at path '{path}' that the {writer} schema requires",
    "ONEOF_FIELD_REMOVED": "The {reader} schema lacks a field of a oneof at path '{path}' of the {writer} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Several fields of the {writer} schema are in the oneof at path '{path}' of the "
    "{reader} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field of the {writer} schema is in the oneof at path '{path}' of the {reader} "
    "schema, which had others already",
}


class Difference(NamedTuple):
    """One thing that the reader cannot read."""

    kind: str
    path: str

    def description(self, reader: str, writer: str) -> str:
        text = TEXTS[self.kind].format(path=self.path, reader=reader, writer=writer)
        return f'{{errorType:"{self.kind}", description:"{text}"}}'


def breaks(reader: ProtobufSchema, writer: ProtobufSchema, reader_word: str, writer_word: str) -> list[str]:
    """Returns a text for each incompatibility; none if the reader can read everything that the writer writes."""
    found = dict.fromkeys(_Comparison(reader, writer).compare())
    return [each.description(reader_word, writer_word) for each in found]


class _Comparison:
    def __init__(self, reader: ProtobufSchema, writer: ProtobufSchema) -> None:
        self._files = (reader.file, writer.file)
        self._reader, self._writer = _messages(reader), _messages(writer)
        self._compared: set[str] = set()

    def compare(self) -> Iterator[Difference]:
        reader, writer = self._files
        if reader.package != writer.package:
            yield Difference("PACKAGE_CHANGED", "#/")
            return
        for message in writer.message_type:
            yield from self._named(f".{writer.package}.{message.name}" if writer.package else f".{message.name}")

    def _named(self, name: str) -> Iterator[Difference]:
        """Yields the differences of a message, and of those within it and in its fields."""
        if name in self._compared:
            return
        self._compared.add(name)
        before, now = self._writer.get(name), self._reader.get(name)
        if before is None:
            return
        path = f"#/{_short(name, self._files[1].package)}"
        if now is None:
            yield Difference("MESSAGE_REMOVED", path)
            return
        yield from self._fields(now, before, path)
        yield from _oneofs(now, before, path)
        for nested in before.nested_type:
            if not nested.options.map_entry:
                yield from self._named(f"{name}.{nested.name}")

    def _fields(self, now: DescriptorProto, before: DescriptorProto, path: str) -> Iterator[Difference]:
        own, theirs = ({each.number: each for each in message.field} for message in (now, before))
        for number in sorted(own.keys() | theirs.keys()):
            field, older = own.get(number), theirs.get(number)
            where = f"{path}/{number}"
            if older is None:
                if field is not None and field.label == REQUIRED:
                    yield Difference("REQUIRED_FIELD_ADDED", where)
            elif field is None:
                if older.label == REQUIRED:
                    yield Difference("REQUIRED_FIELD_REMOVED", where)
                elif (name := _oneof(before, older)) is not None and name in _oneof_names(now):
                    yield Difference("ONEOF_FIELD_REMOVED", f"{path}/{name}/{number}")
            else:
                yield from self._field(field, older, where)

    def _field(self, field: FieldDescriptorProto, older: FieldDescriptorProto, path: str) -> Iterator[Difference]:
        kind, before = _kind(field), _kind(older)
        if kind != before:
            if not any(kind in same and before in same for same in SAME_ON_THE_WIRE):
                is_scalar = "message" not in (kind, before) and "enum" not in (kind, before)
                yield Difference("FIELD_SCALAR_KIND_CHANGED" if is_scalar else "FIELD_KIND_CHANGED", path)
        elif kind == "message":
            entry, older_entry = self._reader.get(field.type_name), self._writer.get(older.type_name)
            are_maps = [each is not None and each.options.map_entry for each in (entry, older_entry)]
            if all(are_maps):
                assert entry is not None and older_entry is not None
                for each, other in zip(entry.field, older_entry.field, strict=True):
                    yield from self._field(each, other, f"{path}/{each.name}")
            elif any(are_maps):
                yield Difference("FIELD_KIND_CHANGED", path)
            elif field.type_name != older.type_name:
                yield Difference("FIELD_NAMED_TYPE_CHANGED", path)
            else:
                yield from self._named(field.type_name)
        if (field.label == REPEATED) != (older.label == REPEATED) and kind not in LENGTH_DELIMITED:
            yield Difference("FIELD_NUMERIC_LABEL_CHANGED", path)


def _oneofs(now: DescriptorProto, before: DescriptorProto, path: str) -> Iterator[Difference]:
    """Yields oneofs into which fields were moved: a reader would keep only the last of several such fields."""
    existing = _oneof_names(before)
    by_number = {each.number: each for each in before.field}
    moved: dict[str, int] = {}
    for field in now.field:
        name, older = _oneof(now, field), by_number.get(field.number)
        if name is not None and older is not None and _oneof(before, older) is None:
            moved[name] = moved.get(name, 0) + 1
    for name, count in moved.items():
        if name in existing:
            yield Difference("FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}/{name}")
        elif count > 1:
            yield Difference("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{name}")


def _oneof(message: DescriptorProto, field: FieldDescriptorProto) -> str | None:
    """Returns the oneof of a field. The one that ``optional`` of proto3 stands for does not count."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    name: str = message.oneof_decl[field.oneof_index].name
    return name


def _oneof_names(message: DescriptorProto) -> set[str]:
    return {name for each in message.field if (name := _oneof(message, each)) is not None}


def _kind(field: FieldDescriptorProto) -> str:
    return SCALARS.get(field.type) or ("enum" if field.type == FieldDescriptorProto.TYPE_ENUM else "message")


def _messages(schema: ProtobufSchema) -> dict[str, DescriptorProto]:
    """Returns the messages of a schema and what it imports by their full names, which begin with a dot."""
    found: dict[str, DescriptorProto] = {}

    def add(message: DescriptorProto, around: str) -> None:
        name = f"{around}.{message.name}"
        found[name] = message
        for nested in message.nested_type:
            add(nested, name)

    for file in schema.files.values():
        for message in file.message_type:
            add(message, f".{file.package}" if file.package else "")
    return found


def _short(name: str, package: str) -> str:
    return name.removeprefix(f".{package}." if package else ".")
