"""The three types of schemas: parses and compares schemas by their type.

Knows nothing of subjects. The modules of a type are imported with the first schema of that type.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

from barnabas.registry.errors import error


class Schema(Protocol):
    """A parsed schema."""

    @property
    def kind(self) -> str: ...

    @property
    def canonical(self) -> str:
        """The text that is stored."""

    @property
    def normalized(self) -> str:
        """The normalized text, which equivalent schemas share, if the type has such a form."""

    def formatted(self, name: str) -> str:
        """Returns the text in a format that a client requests; the canonical text if the format is unknown."""


MODULES: Final = {
    "AVRO": ("barnabas.registry.avro", "barnabas.registry.avro_compatibility"),
    "JSON": ("barnabas.registry.json_schema", "barnabas.registry.json_compatibility"),
    "PROTOBUF": ("barnabas.registry.protobuf", "barnabas.registry.protobuf_compatibility"),
}


def parse(kind: str, text: str, references: Sequence[tuple[str, str]]) -> Schema:
    """Returns a schema. :raises RegistryError: it is not valid, or there is no such type

    :param references: name and text of the schemas that it refers to, each after those that it needs
    """
    if kind not in MODULES:
        raise error("invalid_schema", f"there is no type {kind}; there are {', '.join(MODULES)}")
    made: Schema = import_module(MODULES[kind][0]).parse(text, references)
    return made


def breaks(reader: Schema, writer: Schema, reader_word: str, writer_word: str) -> list[str]:
    """Returns why the reader cannot read data of the writer; an empty list if it can."""
    if reader.kind != writer.kind:
        return ['{errorType:"SCHEMA_TYPE_CHANGED", description:"Incompatible because of different schema type"}']
    compare: Callable[..., Any] = import_module(MODULES[reader.kind][1]).breaks
    return list(compare(reader, writer, reader_word, writer_word))
