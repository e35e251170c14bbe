"""The three types of schemas: what parses each, and what compares two of one type.

Knows nothing of subjects. Each type's modules are imported when the first schema of that type comes.
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
        """The text that is kept."""

    @property
    def normalized(self) -> str:
        """The text that is the same for schemas that mean the same, as far as the type has such a form."""

    def formatted(self, name: str) -> str:
        """Returns the text in a format that a client asks for; unknown ones are the canonical one."""


MODULES: Final = {
    "AVRO": ("barnabas.registry.avro", "barnabas.registry.avro_compatibility"),
    "JSON": ("barnabas.registry.json_schema", "barnabas.registry.json_compatibility"),
    "PROTOBUF": ("barnabas.registry.protobuf", "barnabas.registry.protobuf_compatibility"),
}


def parse(kind: str, text: str, references: Sequence[tuple[str, str]]) -> Schema:
    """Returns a schema. :raises RegistryError: it is not valid, or there is no such type

    :param references: name and text of what it refers to, what each needs before it
    """
    if kind not in MODULES:
        raise error("invalid_schema", f"there is no type {kind}; there are {', '.join(MODULES)}")
    made: Schema = import_module(MODULES[kind][0]).parse(text, references)
    return made


def breaks(reader: Schema, writer: Schema, reader_word: str, writer_word: str) -> list[str]:
    """Returns why the reader cannot read what the writer wrote; nothing if it can."""
    if reader.kind != writer.kind:
        return ['{errorType:"SCHEMA_TYPE_CHANGED", description:"Incompatible because of different schema type"}']
    compare: Callable[..., Any] = import_module(MODULES[reader.kind][1]).breaks
    return list(compare(reader, writer, reader_word, writer_word))
