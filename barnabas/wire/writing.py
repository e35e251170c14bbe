"""Generates the function that writes a structure in one version.

Knows nothing of its callers. Adjacent fields of fixed size and the length after them are written by one ``struct``
call. If a structure has no tagged fields, their count, 0, is a pad byte of that call.
"""

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.wire.source import Source, named
from barnabas.wire.types import BYTE, Fixed, Packers, Sized, uvarint

if TYPE_CHECKING:
    from barnabas.wire.schema import Field, Struct


@functools.cache
def packer(format: str) -> Callable[..., bytes]:
    return struct.Struct(">" + format).pack


REPEATED = {format: Packers(format, lambda made: made.pack) for format in "bhiqHId?"}

#: Record batches of more bytes are separate pieces; copying smaller ones costs less than a piece.
PIECE_SIZE = 8192


class Writer(Source):
    """The source of ``write(it, parts, cuts)``.

    The function appends bytes to ``parts``, and the indexes of large ones to ``cuts``.
    """

    def __init__(self, cls: "type[Struct]", version: int, flexible: bool) -> None:
        super().__init__(f"write_{cls.__name__}_v{version}", "it, parts, cuts")
        self.version, self.flexible = version, flexible
        self.run: list[tuple[str, str]] = []
        self.names.update(uvarint=uvarint, BYTE=BYTE)
        self("write = parts.append")
        self.struct(cls, "it")
        self.flush()

    def give(self, format: str, value: str = "") -> None:
        """Adds a value of fixed size, which is written together with its neighbours; without one, a zero byte."""
        self.run.append((format, value))

    def packed(self, run: list[tuple[str, str]]) -> str:
        format = "".join(format for format, _ in run)
        values = ", ".join(value for _, value in run if value)
        if not values:
            return 'b"' + r"\0" * len(format) + '"'
        pack = self.refer(named("pack", format), packer(format))
        return f"{pack}({values})"

    def flush(self) -> None:
        """Writes the values of fixed size that were added."""
        if self.run:
            self(f"write({self.packed(self.run)})")
            self.run.clear()

    def length(self, value: str, format: str, compact: bool) -> None:
        """Writes a length together with the values that were added.

        :param value: an expression for the length; a variable, if it is compact
        """
        if not compact:
            self.give(format, value)
            self.flush()
        elif self.run:
            short, long = self.packed([*self.run, ("B", value)]), self.packed(self.run)
            self.run.clear()
            self(f"write({short} if {value} < 128 else {long} + uvarint({value}))")
        else:
            self(f"write(BYTE[{value}] if {value} < 128 else uvarint({value}))")

    def struct(self, cls: "type[Struct]", it: str) -> None:
        """Writes the fields in their order, then the tagged fields."""
        fields = [field for field in cls.wire_fields() if self.version in field.versions]
        for field in fields:
            if field.tag is None:
                with self.about(field.name):
                    self.value(field, f"{it}.{field.name}")
        if self.flexible:
            self.tagged([field for field in fields if field.tag is not None], it)

    def value(self, field: "Field", it: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array:
            self.array(field, it, nullable)
        elif isinstance(field.kind, Fixed):
            self.give(field.kind.format, it)
        elif isinstance(field.kind, Sized):
            self.sized(field.kind, it, nullable)
        elif nullable:
            self.flush()
            with self.block(f"if {it} is None:"):
                self(r'write(b"\xff")' if field.tag is None else r'write(b"\0")')
            with self.block("else:"):
                self.give("b", "1")
                self.inner_struct(field.kind, it)
                self.flush()
        else:
            self.inner_struct(field.kind, it)

    def inner_struct(self, cls: "type[Struct]", it: str) -> None:
        inner = self.local("inner")
        self(f"{inner} = {it}")
        self.struct(cls, inner)

    def sized(self, kind: Sized, it: str, nullable: bool) -> None:
        compact = self.flexible and kind.may_be_compact
        encoded = ".encode()" if kind.shape == "text" else ""
        plus = " + 1" if compact else ""
        if nullable:
            self(f"content = {it}")
            with self.block("if content is None:"):
                self(f'size, content = {"0" if compact else "-1"}, b""')
            with self.block("else:"):
                if encoded:
                    self("content = content.encode()")
                self(f"size = len(content){plus}")
        else:
            self(f"content = {it}{encoded}")
            self(f"size = len(content){plus}")
        self.length("size", kind.length_format, compact)
        if kind.shape == "records":
            with self.block(f"if size > {PIECE_SIZE}:"):
                self("cuts.append(len(parts))")
        self("write(content)")

    def array(self, field: "Field", it: str, nullable: bool) -> None:
        items = self.local("items")
        self(f"{items} = {it}")
        plus = " + 1" if self.flexible else ""
        absent = f"{0 if self.flexible else -1} if {items} is None else " if nullable else ""
        self(f"size = {absent}len({items}){plus}")
        self.length("size", "i", self.flexible)
        if nullable:
            with self.block(f"if {items}:"):
                self.elements(field.kind, items)
        else:
            self.elements(field.kind, items)

    def elements(self, kind: "Fixed | Sized | type[Struct]", items: str) -> None:
        if isinstance(kind, Fixed):
            if kind.format in REPEATED:
                pack = self.refer(named("pack_many", kind.format), REPEATED[kind.format])
                self(f"write({pack}[len({items})](*{items}))")
            else:
                self(f'write(b"".join({items}))')
            return
        each = self.local("each")
        with self.block(f"for {each} in {items}:"):
            if isinstance(kind, Sized):
                self.sized(kind, each, False)
            else:
                self.struct(kind, each)
                self.flush()

    def tagged(self, fields: "list[Field]", it: str) -> None:
        """Writes the tagged fields at the end of a structure, except those that have their defaults."""
        if not fields:
            self.give("x")
            return
        self.flush()
        with self.block(f"if {' or '.join(self.is_worth(field, it) for field in fields)}:"):
            present, outer, content = self.local("present"), self.local("outer"), self.local("content_of_tag")
            self(f"{present}, {outer} = [], write")
            for field in sorted(fields, key=lambda field: field.tag or 0):
                with self.about(field.name), self.block(f"if {self.is_worth(field, it)}:"):
                    if isinstance(field.kind, Fixed) and not field.is_array:
                        header = [("B", str(field.tag)), ("B", str(field.kind.size))]
                        self(f"{present}.append({self.packed([*header, (field.kind.format, f'{it}.{field.name}')])})")
                        continue
                    self(f"{content} = []")
                    self(f"write = {content}.append")
                    self.value(field, f"{it}.{field.name}")
                    self.flush()
                    self(f'{content} = b"".join({content})')
                    self(f"{present}.append(uvarint({field.tag}) + uvarint(len({content})) + {content})")
            self(f"write = {outer}")
            self(f'write(BYTE[len({present})] + b"".join({present}))')
        with self.block("else:"):
            self(r'write(b"\0")')

    def is_worth(self, field: "Field", it: str) -> str:
        """Returns the condition for writing a tagged field: that it does not have its default."""
        value, default = f"{it}.{field.name}", field.default
        if default is None:
            return f"{value} is not None"
        if field.is_array:
            return f"({value} is None or {value})" if self.version in field.nullable else value
        if isinstance(default, bool | int | float | str | bytes):
            return f"{value} != {default!r}"
        name = self.refer(f"default_{field.name}", default)
        return f"({value} is not {name} and {value} != {name})"
