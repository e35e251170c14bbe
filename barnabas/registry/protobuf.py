"""Protobuf schemas: compiles them with their imports by protoc, and prints them.

Knows nothing of compatibility and subjects. Clients send a schema as text, or as a ``FileDescriptorProto`` in base64,
as Confluent's serializers do; it is stored as text.
"""

import base64
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.registry.errors import error
from barnabas.registry.protobuf_text import printed

FILE: Final = "default.proto"
BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
IMPORTS: Final = Path(__file__).with_name("imports")
"""Where the files are that a schema may import without a reference, besides Google's."""

Files = dict[str, FileDescriptorProto]


class ProtobufSchema:
    """A schema, with the schemas that it imports.

    :param files: descriptors by name, that of the schema itself among them
    """

    kind = "PROTOBUF"

    def __init__(self, text: str, files: Files) -> None:
        self.canonical = text
        self.files = files

    @property
    def file(self) -> FileDescriptorProto:
        return self.files[FILE]

    @property
    def normalized(self) -> str:
        return self.canonical

    def formatted(self, name: str) -> str:
        """Returns the text; as ``serialized`` the descriptor in base64."""
        if name != "serialized":
            return self.canonical
        return base64.b64encode(self.file.SerializeToString(deterministic=True)).decode()


def parse(text: str, references: Sequence[tuple[str, str]]) -> ProtobufSchema:
    """Returns the schema of a text. :raises RegistryError: it is not valid, or an import is missing

    :param references: name and text of the schemas that it may import; the name is that in the import
    """
    given: dict[str, str] = {}
    try:
        for name, each in references:
            given[name] = _as_text(each, given)
        text = _as_text(text, given)
        compiled = _compiled(text, given)
    except (ValueError, DecodeError) as why:
        raise error("invalid_schema", f"{text[:500]} is no Protobuf schema: {why}") from None
    for is_absolute in (False, True):
        canonical = printed(_with_options(compiled[FILE], compiled), is_absolute=is_absolute)
        try:
            again = _compiled(canonical, given)
        except ValueError:
            continue
        if again[FILE] == compiled[FILE]:
            return ProtobufSchema(canonical, again)
    return ProtobufSchema(text, compiled)  # it has what is not printed, such as groups and editions


def _as_text(text: str, references: dict[str, str]) -> str:
    """Returns the text of a schema that may be a descriptor. :raises ValueError, DecodeError: it is neither"""
    if not text or not BASE64.fullmatch("".join(text.split())):
        return text
    file = FileDescriptorProto.FromString(base64.b64decode(text))
    file.name = FILE
    if _has_groups(file.message_type, file.extension):
        raise ValueError("its groups cannot be printed: send its text, not its descriptor")
    imports = "".join(f'import public "{each}";' for each in file.dependency)  # protoc warns of unused ones
    imported = _compiled(f'syntax = "proto3"; {imports}', references)
    return printed(_with_options(file, {**imported, FILE: file}), is_absolute=True)


def _has_groups(messages: Iterable[DescriptorProto], extensions: Iterable[FieldDescriptorProto]) -> bool:
    """Returns whether a field, or one within these messages, is a group of proto2."""
    return any(each.type == FieldDescriptorProto.TYPE_GROUP for each in extensions) or any(
        _has_groups(each.nested_type, (*each.field, *each.extension)) for each in messages
    )


def _with_options(file: FileDescriptorProto, files: Files) -> FileDescriptorProto:
    """Returns a descriptor whose custom options, which it or its imports declare, are fields.

    :param files: its imports and itself, each after those that it needs
    :raises ValueError: it is not valid
    """
    pool = DescriptorPool()
    try:
        for each in files.values():
            pool.Add(each)
    except TypeError as why:
        raise ValueError(str(why)) from None
    try:
        kind = pool.FindMessageTypeByName(FileDescriptorProto.DESCRIPTOR.full_name)
    except KeyError:  # without an import of it there are no custom options
        return file
    understood: FileDescriptorProto = GetMessageClass(kind).FromString(file.SerializeToString())
    return understood


def _compiled(text: str, references: dict[str, str]) -> Files:
    """Returns the descriptors of a schema and of what it imports. :raises ValueError: it is not valid"""
    from grpc_tools import _protoc_compiler, protoc

    with TemporaryDirectory(prefix="barnabas-schema-") as directory:
        root = Path(directory).resolve()
        for name, each in {**references, FILE: text}.items():
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                raise ValueError(f"{name} is no name of a file to import")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each, "utf-8")
        includes = [str(root), str(files("grpc_tools") / "_proto"), str(IMPORTS), *_common_protos()]
        try:  # this entry point returns the errors, instead of writing them to standard error
            _protoc_compiler.get_protos(FILE.encode(), [each.encode() for each in includes])
        except Exception as why:
            raise ValueError(_message(why)) from None
        output = root / "descriptors"
        options = [f"-I{each}" for each in includes]
        if protoc.main(["protoc", *options, "--include_imports", f"--descriptor_set_out={output}", FILE]):
            raise ValueError("protoc refuses it")
        found = FileDescriptorSet.FromString(output.read_bytes())
    return {each.name: each for each in found.file}


def _common_protos() -> list[str]:
    """Returns where ``google/type`` is, if it is installed."""
    from importlib.util import find_spec

    spec = find_spec("google.type")
    places = spec.submodule_search_locations if spec is not None else None
    return [str(Path(each).parent.parent) for each in places or ()]


def _message(why: Exception) -> str:
    """Returns the error messages of protoc, on one line."""
    return "; ".join(map(_of_one_line, why.errors())) if hasattr(why, "errors") else str(why)


def _of_one_line(why: Any) -> str:
    """Returns an error of protoc, whose lines and columns count from 0; the line -1 stands for the whole file."""
    name, text = why.filename.decode(), " ".join(why.message.decode().split())
    return f"{name}: {text}" if why.line < 0 else f"{name}:{why.line + 1}:{why.column + 1}: {text}"
