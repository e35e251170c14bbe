"""Prints the descriptor of a ``.proto`` file as text in a canonical form, without comments.

Knows nothing of where the descriptor comes from. Custom options are printed if they are fields of the descriptor.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.text_format import MessageToString

SCALARS: Final = {
    FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}"): name
    for name in (
        "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes", "uint32",
        "sfixed32", "sfixed64", "sint32", "sint64",
    )
}  # fmt: skip
REPEATED: Final = FieldDescriptorProto.LABEL_REPEATED
REQUIRED: Final = FieldDescriptorProto.LABEL_REQUIRED
TEXTUAL: Final = (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES)
INDENT: Final = "  "


def printed(file: FileDescriptorProto, *, is_absolute: bool) -> str:
    """Returns the text.

    :param is_absolute: whether types are named from the root; else without the file's own package
    """
    return "\n".join(_Printer(file, is_absolute).lines()) + "\n"


def json_name(name: str) -> str:
    """Returns the name in JSON that a field has if it declares none."""
    first, *others = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in others)


class _Printer:
    def __init__(self, file: FileDescriptorProto, is_absolute: bool) -> None:
        self._file = file
        self._prefix = "" if is_absolute else f".{file.package}." if file.package else "."
        self._is_proto3 = file.syntax == "proto3"

    def lines(self) -> Iterator[str]:
        file = self._file
        yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        if file.dependency:
            yield ""
        for index, name in enumerate(file.dependency):
            kind = "public " if index in file.public_dependency else "weak " if index in file.weak_dependency else ""
            yield f'import {kind}"{name}";'
        if options := list(_options(file.options)):
            yield ""
            yield from (f"option {each};" for each in options)
        for message in file.message_type:
            yield ""
            yield from self._message(message, "")
        for enum in file.enum_type:
            yield ""
            yield from _enum(enum, "")
        yield from self._extensions(file.extension, "")
        for service in file.service:
            yield ""
            yield from self._service(service)

    def _type(self, field: Any) -> str:
        return SCALARS.get(field.type) or self._named(field.type_name)

    def _named(self, name: str) -> str:
        return name.removeprefix(self._prefix) if self._prefix else name

    def _message(self, message: DescriptorProto, indent: str) -> Iterator[str]:
        inner = indent + INDENT
        yield f"{indent}message {message.name} {{"
        yield from (f"{inner}option {each};" for each in _options(message.options) if not each.startswith("map_entry"))
        if ranges := [(each.start, each.end - 1) for each in message.reserved_range]:
            yield f"{inner}reserved {_ranges(ranges)};"
        if message.reserved_name:
            yield f"{inner}reserved {_quoted(message.reserved_name)};"
        maps = {each.name: each for each in message.nested_type if each.options.map_entry}
        printed_oneofs: set[int] = set()
        for field in message.field:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield f"{inner}{self._field(field, maps)}"
            elif field.oneof_index not in printed_oneofs:
                printed_oneofs.add(field.oneof_index)
                yield f"{inner}oneof {message.oneof_decl[field.oneof_index].name} {{"
                for each in message.field:
                    if each.HasField("oneof_index") and each.oneof_index == field.oneof_index:
                        yield f"{inner}{INDENT}{self._field(each, maps, is_of_oneof=True)}"
                yield f"{inner}}}"
        if ranges := [(each.start, each.end - 1) for each in message.extension_range]:
            yield f"{inner}extensions {_ranges(ranges)};"
        for nested in message.nested_type:
            if not nested.options.map_entry:
                yield from self._message(nested, inner)
        for enum in message.enum_type:
            yield from _enum(enum, inner)
        yield from self._extensions(message.extension, inner)
        yield f"{indent}}}"

    def _field(self, field: Any, maps: dict[str, DescriptorProto], *, is_of_oneof: bool = False) -> str:
        entry = maps.get(field.type_name.rpartition(".")[2]) if field.label == REPEATED else None
        if entry is not None:
            key, value = entry.field
            kind = f"map<{self._type(key)}, {self._type(value)}>"
        else:
            kind = self._label(field, is_of_oneof) + self._type(field)
        options = list(_options(field.options))
        if field.HasField("json_name") and field.json_name != json_name(field.name):
            options.append(f'json_name = "{field.json_name}"')
        if field.HasField("default_value"):
            options.append(f"default = {_default(field)}")
        suffix = f" [{', '.join(options)}]" if options else ""
        return f"{kind} {field.name} = {field.number}{suffix};"

    def _label(self, field: Any, is_of_oneof: bool) -> str:
        if field.label == REPEATED:
            return "repeated "
        if field.label == REQUIRED:
            return "required "
        return "" if is_of_oneof or (self._is_proto3 and not field.proto3_optional) else "optional "

    def _extensions(self, fields: Any, indent: str) -> Iterator[str]:
        for field in fields:
            yield f"{indent}extend {self._named(field.extendee)} {{"
            yield f"{indent}{INDENT}{self._field(field, {})}"
            yield f"{indent}}}"

    def _service(self, service: ServiceDescriptorProto) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from (f"{INDENT}option {each};" for each in _options(service.options))
        for method in service.method:
            received = ("stream " if method.client_streaming else "") + self._named(method.input_type)
            answered = ("stream " if method.server_streaming else "") + self._named(method.output_type)
            yield f"{INDENT}rpc {method.name} ({received}) returns ({answered});"
        yield "}"


def _enum(enum: EnumDescriptorProto, indent: str) -> Iterator[str]:
    inner = indent + INDENT
    yield f"{indent}enum {enum.name} {{"
    yield from (f"{inner}option {each};" for each in _options(enum.options))
    if ranges := [(each.start, each.end) for each in enum.reserved_range]:
        yield f"{inner}reserved {_ranges(ranges)};"
    if enum.reserved_name:
        yield f"{inner}reserved {_quoted(enum.reserved_name)};"
    for value in enum.value:
        options = ", ".join(_options(value.options))
        yield f"{inner}{value.name} = {value.number}{f' [{options}]' if options else ''};"
    yield f"{indent}}}"


def _ranges(ranges: list[tuple[int, int]]) -> str:
    return ", ".join(
        str(first) if first == last else f"{first} to {'max' if last >= 536870911 else last}" for first, last in ranges
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in names)


def _default(field: Any) -> str:
    if field.type not in TEXTUAL:
        return str(field.default_value)
    if field.type == FieldDescriptorProto.TYPE_BYTES:  # it is escaped already
        return f'"{field.default_value}"'
    return _quoted_text(field.default_value)


def _options(options: Any) -> Iterator[str]:
    """Yields the options that are set, but for Protobuf's own that are messages or lists."""
    for field, value in options.ListFields():
        if field.is_extension:
            name = f"({field.full_name})"
            yield from (f"{name} = {_option(field, each)}" for each in (value if field.is_repeated else (value,)))
        elif field.message_type is None and not field.is_repeated:
            yield f"{field.name} = {_option(field, value)}"


def _option(field: Any, value: Any) -> str:
    """Returns the value of an option."""
    if field.message_type is not None:
        return f"{{ {MessageToString(value, as_one_line=True, as_utf8=True)} }}"
    if field.enum_type is not None:
        name: str = field.enum_type.values_by_number[value].name
        return name
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return '"' + "".join(f"\\{each:03o}" for each in value) + '"'
    return _quoted_text(value) if isinstance(value, str) else str(value)


def _quoted_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
