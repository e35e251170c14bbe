"""Protobuf schemas: descriptor sets from files, .proto text or a registry, and the messages that they describe.

Knows nothing of values. grpcio-tools, which is protoc as a Python package, compiles text.
"""

import base64
import binascii
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from barnabas.pipelines.values.framing import Undecodable
from barnabas.pipelines.values.registry import Found, Reference, Registry

BUILT_IN = "google/protobuf/"
MAIN = "schema.proto"
"""The file name for a text that has no name."""


def from_file(path: Path) -> bytes:
    """Returns the descriptor set of a .proto file with its imports from the same directory, or one that protoc
    wrote.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}: a .proto file or a descriptor set (protoc --descriptor_set_out)")
    if path.suffix == ".proto":
        return _protoc(path.parent, path.name)
    return _checked(path.read_bytes(), str(path))


def from_text(text: str, imported: Mapping[str, str] | None = None) -> bytes:
    """Returns the descriptor set of .proto text and of its imports, whose names are given."""
    with tempfile.TemporaryDirectory() as folder:
        for name, each in {**(imported or {}), MAIN: text}.items():
            path = Path(folder, name)
            if not path.resolve().is_relative_to(Path(folder).resolve()):
                raise ValueError(f"a Protobuf schema imports {name!r}, which is not a path below it")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each, encoding="utf-8")
        return _protoc(Path(folder), MAIN)


def from_registry(found: Found) -> bytes:
    """Returns the descriptor set of a registry's schema. Registries return descriptors in base64 or, some of them,
    text.
    """
    files = descriptor_pb2.FileDescriptorSet()
    try:
        for name, text in found.texts:
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
            file.name = name or file.name or MAIN
            files.file.append(file)
    except (binascii.Error, DecodeError, ValueError):
        return from_text(found.text, dict(found.texts[:-1]))
    _add_built_in(files)
    return bytes(files.SerializeToString())


def main_file(descriptors: bytes) -> str:
    """Returns the last file of a set, which imports the others: protoc writes them in this order."""
    return str(_files(descriptors).file[-1].name)


def message_of(descriptors: bytes, name: str | None) -> Descriptor:
    """Returns the message with this name, with or without the package; by default the first of the main file."""
    pool, names = _pool(descriptors)
    if name is None:
        main: Any = pool.FindFileByName(main_file(descriptors))
        own = list(main.message_types_by_name.values())
        if not own:
            raise ValueError(f"{main.name} has no message")
        return own[0]
    found = [each for each in names if each == name or each.endswith(f".{name}")]
    exact = [each for each in found if each == name] or found
    if len(exact) != 1:
        which = f"is several: {', '.join(exact)}" if exact else f"is not in the schema, which has {', '.join(names)}"
        raise ValueError(f"the message {name} {which}")
    return pool.FindMessageTypeByName(exact[0])


def class_of(descriptor: Descriptor) -> Any:
    """Returns the class of this type's messages."""
    return message_factory.GetMessageClass(descriptor)


def at_indexes(descriptors: bytes, indexes: Sequence[int]) -> str:
    """Returns the full name of the message with these indexes in the main file.

    :raises Undecodable: there is none.
    """
    file = next(each for each in _files(descriptors).file if each.name == main_file(descriptors))
    messages: Any = file.message_type
    path = [file.package] if file.package else []
    for index in indexes:
        if not 0 <= index < len(messages):
            raise Undecodable(f"the message indexes {list(indexes)} lead to no message of its schema")
        path.append(messages[index].name)
        messages = messages[index].nested_type
    return ".".join(path)


def indexes_of(descriptor: Descriptor) -> tuple[int, ...]:
    """Returns the indexes of a message in its file; the reverse of `at_indexes`."""
    indexes: list[int] = []
    while descriptor is not None:
        outer = descriptor.containing_type
        beside = (outer.nested_types if outer else descriptor.file.message_types_by_name.values()) or ()
        indexes.insert(0, [each.full_name for each in beside].index(descriptor.full_name))
        descriptor = outer
    return tuple(indexes)


def _protoc(folder: Path, name: str) -> bytes:
    """Compiles in a new process, as protoc writes errors to the process's standard error."""
    with tempfile.TemporaryDirectory() as made:
        target = Path(made, "set")
        command = [sys.executable, "-c", _PROTOC, "protoc", f"-I{folder}", "--include_imports"]
        done = subprocess.run(
            [*command, f"--descriptor_set_out={target}", name], capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = [line.replace(f"{folder}/", "") for line in done.stderr.splitlines() if " parser.cc:" not in line]
            errors = " ".join(line for line in said if not line.startswith("WARNING: All log messages"))
            raise ValueError(f"the Protobuf schema cannot be compiled: {errors}")
        return target.read_bytes()


_PROTOC = """
import importlib.resources, sys
try:
    from grpc_tools import protoc
except ImportError:
    sys.exit("grpcio-tools is missing: pip install 'barnabas[spark]', or give a descriptor set of protoc")
sys.exit(protoc.main([*sys.argv[1:-1], f"-I{importlib.resources.files('grpc_tools') / '_proto'}", sys.argv[-1]]))
"""


def _checked(content: bytes, where: str) -> bytes:
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(content)
    except DecodeError:
        files = descriptor_pb2.FileDescriptorSet()
    if not files.file:
        raise ValueError(
            f"{where} is not a descriptor set: create one with protoc --include_imports --descriptor_set_out"
        )
    _add_built_in(files)
    return bytes(files.SerializeToString())


def _add_built_in(files: Any) -> None:
    """Adds Google's own files if they are imported but missing, before the files that import them."""
    from google.protobuf import descriptor_pool

    known = {file.name for file in files.file}
    missing = [name for file in files.file for name in file.dependency if name not in known]
    while missing:
        name = missing.pop()
        if name in known:
            continue
        if not name.startswith(BUILT_IN):
            raise ValueError(f"the descriptor set lacks {name}: create it with protoc --include_imports")
        module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
        __import__(module)
        file = descriptor_pb2.FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
        files.file.insert(0, file)
        known.add(name)
        missing += file.dependency


@lru_cache(maxsize=256)
def _files(descriptors: bytes) -> Any:
    return descriptor_pb2.FileDescriptorSet.FromString(descriptors)


@lru_cache(maxsize=256)
def _pool(descriptors: bytes) -> tuple[Any, list[str]]:
    """Returns a pool of only these files, and the full names of its messages, without Google's and map entries."""
    pool: Any = DescriptorPool()
    names: list[str] = []
    waiting = list(_files(descriptors).file)
    added: set[str] = set()

    def gather(prefix: str, messages: Any) -> None:
        for each in messages:
            if not each.options.map_entry:
                name = f"{prefix}.{each.name}" if prefix else each.name
                names.append(name)
                gather(name, each.nested_type)

    while waiting:
        ready = [file for file in waiting if added.issuperset(file.dependency)]
        if not ready:
            raise ValueError(f"the descriptor set lacks what {waiting[0].name} imports: use protoc --include_imports")
        for file in ready:
            pool.Add(file)
            added.add(file.name)
            if not file.name.startswith(BUILT_IN):
                gather(file.package, file.message_type)
        waiting = [file for file in waiting if file.name not in added]
    return pool, names


def registered(registry: Registry, subject: str, descriptors: bytes, message: str) -> int:
    """Registers the message's file in base64, after the files that it imports, and returns its id.

    An imported file has its own name as subject, as with confluent-kafka's serializer.
    """
    pool, _ = _pool(descriptors)
    main: Any = pool.FindMessageTypeByName(message).file

    def write(file: Any, subject: str) -> tuple[int, str, list[Reference]]:
        references = []
        for each in file.dependencies:
            if not each.name.startswith(BUILT_IN):
                _, inner, others = write(each, each.name)
                version = registry.version_of(each.name, inner, "PROTOBUF", others)
                references.append(Reference(each.name, each.name, version))
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        text = base64.b64encode(proto.SerializeToString()).decode()
        return registry.register(subject, text, "PROTOBUF", references), text, references

    return write(main, subject)[0]
