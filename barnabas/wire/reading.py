"""Generates the function that reads a structure in one version.

Knows nothing of its callers. Adjacent fields of fixed size, the length after them and the count of tagged fields are
read by one ``struct`` call. Lengths and counts are compared with the remaining bytes before anything is allocated. A
read past the end fails at the next field of fixed size, or in the last line.
"""

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.wire import types
from barnabas.wire.source import Source, named
from barnabas.wire.types import Fixed, Packers, Sized

if TYPE_CHECKING:
    from barnabas.wire.schema import Field, Struct


@functools.cache
def unpacker(format: str) -> Callable[..., tuple[Any, ...]]:
    return struct.Struct(">" + format).unpack_from


REPEATED = {format: Packers(format, lambda made: made.unpack_from) for format in "bhiqHId?"}


def has_records(cls: "type[Struct]", version: int) -> bool:
    """Returns whether the structure contains record batches, which are never copied."""
    for field in cls.wire_fields():
        if version in field.versions:
            if isinstance(field.kind, Sized):
                if field.kind.shape == "records":
                    return True
            elif not isinstance(field.kind, Fixed) and has_records(field.kind, version):
                return True
    return False


class Reader(Source):
    """The source of ``read(data, at) -> (structure, end)``."""

    def __init__(self, cls: "type[Struct]", version: int, flexible: bool) -> None:
        super().__init__(f"read_{cls.__name__}_v{version}", "data, at")
        self.version, self.flexible = version, flexible
        self.in_place = has_records(cls, version)
        self.run: list[tuple[str, str]] = []
        self.names.update(new=object.__new__, read_uvarint=types.read_uvarint, read_length=types.read_length)
        self.names.update(skip_tags=types.skip_tags, skip_tagged=types.skip_tagged)
        self.names.update(negative=types.negative, beyond=types.beyond)
        kind = "memoryview" if self.in_place else "bytes"
        with self.block(f"if type(data) is not {kind}:"):
            self(f"data = {kind}(data)")
        self("limit = len(data)")
        self.struct(cls, "it")
        self.flush()
        with self.block("if at > limit:"):
            self("raise IndexError")
        self("return it, at")

    def take(self, format: str, target: str) -> None:
        """Adds a value of fixed size, which is read together with its neighbours."""
        self.run.append((format, target))

    def flush(self) -> None:
        """Reads the values of fixed size that were added."""
        if not self.run:
            return
        format = "".join(format for format, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        self.run.clear()
        if format == "B":
            self(f"{targets} = data[at]")
        else:
            unpack = self.refer(named("unpack", format), unpacker(format))
            self(f"{targets}{',' if ', ' not in targets else ''} = {unpack}(data, at)")
        self(f"at += {struct.calcsize('>' + format)}")

    def struct(self, cls: "type[Struct]", it: str) -> None:
        """Reads the fields in their order, then the tagged fields."""
        self(f"{it} = new({self.refer(cls.__name__, cls)})")
        fields = [field for field in cls.wire_fields() if self.version in field.versions]
        for field in fields:
            if field.tag is None:
                with self.about(field.name):
                    self.value(field, f"{it}.{field.name}")
        if self.flexible:
            self.tagged([field for field in fields if field.tag is not None], it)

    def value(self, field: "Field", target: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array:
            self.array(field, target, nullable)
        elif isinstance(field.kind, Fixed):
            self.take(field.kind.format, target)
        elif isinstance(field.kind, Sized):
            self.sized(field.kind, target, nullable)
        elif nullable:
            self.take("b", "present")
            self.flush()
            # Null is -1, or 0 in a tagged field, where it is a varint.
            with self.block("if present < 0:" if field.tag is None else "if present < 1:"):
                self(f"{target} = None")
            with self.block("else:"):
                self.inner_struct(field.kind, target)
                self.flush()
        else:
            self.inner_struct(field.kind, target)

    def inner_struct(self, cls: "type[Struct]", target: str) -> None:
        inner = self.local("inner")
        self.struct(cls, inner)
        self(f"{target} = {inner}")

    def length(self, name: str, format: str, compact: bool, nullable: bool) -> None:
        """Reads a length into ``name``. A compact length stays as on the wire, where it is one higher."""
        self.take("B" if compact else format, name)
        self.flush()
        if compact and nullable:
            with self.block(f"if {name} > 127:"):
                self(f"{name}, at = read_uvarint(data, at - 1)")
        elif compact:
            with self.block(f"if not 0 < {name} < 128:"):
                self(f"{name}, at = read_length(data, at - 1)")
        elif not nullable:
            with self.block(f"if {name} < 0:"):
                self("raise negative()")

    def sized(self, kind: Sized, target: str, nullable: bool) -> None:
        compact = self.flexible and kind.may_be_compact
        self.length("size", kind.length_format, compact, nullable)
        if nullable:
            with self.block(f"if size < {int(compact)}:"):
                self(f"{target} = None")
            with self.block("else:"):
                self.content(kind, target, compact)
        else:
            self.content(kind, target, compact)

    def content(self, kind: Sized, target: str, compact: bool) -> None:
        self("end = at + size - 1" if compact else "end = at + size")
        if kind.shape == "text":
            whole = (
                'str(data[at:end], "utf-8", "replace")' if self.in_place else 'data[at:end].decode("utf-8", "replace")'
            )
        elif kind.shape == "bytes" and self.in_place:
            whole = "bytes(data[at:end])"
        else:
            whole = "data[at:end]"
        self(f"{target} = {whole}")
        self("at = end")

    def array(self, field: "Field", target: str, nullable: bool) -> None:
        self.length("count", "i", self.flexible, nullable)
        if nullable:
            with self.block(f"if count < {int(self.flexible)}:"):
                self(f"{target} = None")
            with self.block("else:"):
                self.elements(field.kind, target)
        else:
            self.elements(field.kind, target)

    def elements(self, kind: "Fixed | Sized | type[Struct]", target: str) -> None:
        if self.flexible:
            self("count -= 1")
        if isinstance(kind, Fixed):
            return self.numbers(kind, target)
        with self.block(f"if count * {self.smallest(kind)} > limit - at:"):
            self("raise beyond(count)")
        items, each = self.local("items"), self.local("each")
        self(f"{target} = {items} = []")
        with self.block("for _ in range(count):"):
            if isinstance(kind, Sized):
                self.sized(kind, each, False)
            else:
                self.struct(kind, each)
                self.flush()
            self(f"{items}.append({each})")

    def numbers(self, kind: Fixed, target: str) -> None:
        self(f"end = at + {kind.size} * count")
        with self.block("if end > limit:"):
            self("raise beyond(count)")
        if kind.format in REPEATED:
            unpack = self.refer(named("unpack_many", kind.format), REPEATED[kind.format])
            self(f"{target} = [*{unpack}[count](data, at)]")
        else:
            self(f"{target} = [bytes(data[start : start + {kind.size}]) for start in range(at, end, {kind.size})]")
        self("at = end")

    def smallest(self, kind: "Fixed | Sized | type[Struct]") -> int:
        """Returns the minimum size of a value of that kind."""
        if isinstance(kind, Fixed):
            return kind.size
        if isinstance(kind, Sized):
            compact = self.flexible and kind.may_be_compact
            return 1 if compact else struct.calcsize(kind.length_format)
        total = int(self.flexible)
        for field in kind.wire_fields():
            if self.version in field.versions and field.tag is None:
                if field.is_array:
                    total += 1 if self.flexible else 4
                elif self.version in field.nullable and not isinstance(field.kind, Sized):
                    total += 1
                else:
                    total += self.smallest(field.kind)
        assert total > 0, f"{kind.__qualname__} has no bytes at version {self.version}: its count could not be checked"
        return total

    def tagged(self, fields: "list[Field]", it: str) -> None:
        """Reads the tagged fields at the end of a structure; usually one byte with their count, 0."""
        self.take("B", "count")
        self.flush()
        with self.block("if count:"):
            if not fields:
                self("at = skip_tags(data, at - 1)")
                return
            self("count, at = read_uvarint(data, at - 1)")
            with self.block("for _ in range(count):"):
                self("tag, end = read_uvarint(data, at)")
                branch = "if"
                for field in fields:
                    with self.about(field.name), self.block(f"{branch} tag == {field.tag}:"):
                        self("_, at = read_uvarint(data, end)")
                        self.value(field, f"{it}.{field.name}")
                        self.flush()
                    branch = "elif"
                with self.block("else:"):
                    self("at = skip_tagged(data, end)")
