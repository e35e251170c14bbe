"""Structures of the protocol: classes whose annotations are their fields, in wire order.

Knows nothing of API keys, headers or sockets. Declaring a class costs next to nothing: its fields are evaluated on
first use.

>>> from barnabas.wire.types import int32, string
>>> class Point(Struct):
...     x: int32
...     y: int32
...     label: string | None = field("2+", default=None)
>>> Point(x=1, y=2, label="here").encode(version=0).hex(" ", 4)
'00000001 00000002'

A field that a version does not have has its default. That costs nothing, because the default is the class attribute.

>>> Point.decode(bytes.fromhex("00000001 00000002"), version=0)
Point(x=1, y=2)
>>> Point.decode(bytes.fromhex("00000001 00000002 0004 68657265"), version=2).label
'here'
"""

import sys
import types
import typing
from _thread import RLock
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

from barnabas.wire import compiler
from barnabas.wire.types import BUILTIN_KINDS, MISSING, Buffer, Fixed, Sized

LATEST = 32767


class Versions(NamedTuple):
    """A range of versions, both ends included: ``"3-9"``, ``"3+"``, ``"3"``, ``"none"``.

    >>> Versions.parse("3-9"), 9 in Versions.parse("3+"), 0 in Versions.parse("none")
    (Versions(first=3, last=9), True, False)
    >>> str(Versions(3, 9)), str(Versions.parse("3+"))
    ('3-9', '3+')
    """

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        if text == "none":
            return cls(LATEST + 1, LATEST)
        first, dash, last = text.partition("-")
        if not dash:
            last = str(LATEST) if text.endswith("+") else first
        return cls(int(first.rstrip("+")), int(last))

    def __contains__(self, version: object) -> bool:
        return self.first <= version <= self.last  # type: ignore[operator]

    def __str__(self) -> str:
        if self.last < self.first:
            return "none"
        if self.last == LATEST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


ALL, NONE = Versions.parse("0+"), Versions.parse("none")


class Field(NamedTuple):
    """A field, evaluated for the compiler."""

    name: str
    kind: "Fixed | Sized | type[Struct]"
    is_array: bool
    versions: Versions  #: with the field
    nullable: Versions  #: that allow null
    tag: int | None
    default: Any  #: MISSING if the field is required


class FieldSpec:
    """The arguments of :func:`field`, kept until the class is used."""

    __slots__ = ("default", "default_factory", "nullable", "tag", "versions")

    def __init__(self, versions: str, default: Any, default_factory: Any, tag: int | None, nullable: str) -> None:
        self.versions, self.default, self.default_factory = versions, default, default_factory
        self.tag, self.nullable = tag, nullable


def field(
    versions: str = "0+",
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | None = None,
    tag: int | None = None,
    nullable: str = "0+",
) -> Any:
    """Declares a field that is not in all versions, is tagged, or is nullable only in some versions.

    :param versions: the versions with the field
    :param default: the value in other versions
    :param default_factory: creates the default, once for all structures: it must not be changed in place
    :param tag: the tag of a tagged field, which is not written if it has its default
    :param nullable: the versions that allow null, if the annotation has ``| None``
    """
    return FieldSpec(versions, default, default_factory, tag, nullable)


_resolving = RLock()


def _field(cls: "type[Struct]", name: str, hint: Any) -> Field:
    is_nullable = is_array = False
    hint = _evaluated(cls, hint)
    origin = typing.get_origin(hint)
    if origin is typing.Union or origin is types.UnionType:
        is_nullable = True
        hint = next(each for each in typing.get_args(hint) if each is not types.NoneType)
        origin = typing.get_origin(hint)
    if origin is list:
        is_array = True
        (hint,) = typing.get_args(hint)
    hint = _evaluated(cls, hint)
    kind = BUILTIN_KINDS.get(hint) or (hint.__metadata__[0] if hasattr(hint, "__metadata__") else hint)
    spec = cls.__dict__.get(name, MISSING)
    if not isinstance(spec, FieldSpec):
        return Field(name, kind, is_array, ALL, ALL if is_nullable else NONE, None, spec)
    default = spec.default_factory() if spec.default_factory is not None else spec.default
    nullable = Versions.parse(spec.nullable) if is_nullable else NONE
    return Field(name, kind, is_array, Versions.parse(spec.versions), nullable, spec.tag, default)


def _evaluated(cls: "type[Struct]", hint: Any) -> Any:
    """Evaluates an annotation in quotes, which refers to an enclosing class."""
    return eval(hint, vars(sys.modules[cls.__module__])) if isinstance(hint, str) else hint


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Struct:
    """A structure; subclasses declare their fields as annotations."""

    versions: ClassVar[Versions] = ALL
    flexible: ClassVar[Versions] = NONE
    _fields: ClassVar[tuple[Field, ...]]
    _is_used: ClassVar[bool]  #: set at the first instance

    def __init__(self, **values: Any) -> None:
        # The second instance generates the real __init__, which replaces this one. It costs more than an instance, and
        # most structures of a start are made once.
        cls = type(self)
        if "_is_used" in cls.__dict__:
            cls.__init__ = compiler.initializer(cls)  # type: ignore[method-assign]
            cls.__init__(self, **values)
            return
        cls._is_used = True
        for each in cls.wire_fields():
            value = values.pop(each.name, each.default)
            if value is MISSING:
                raise TypeError(f"{cls.__qualname__} needs {each.name!r}")
            setattr(self, each.name, value)
        if values:
            raise TypeError(f"{cls.__qualname__} has no {', '.join(map(repr, values))}")

    @classmethod
    def wire_fields(cls) -> tuple[Field, ...]:
        """Returns the fields in wire order. The first call evaluates them, and sets defaults as class attributes."""
        if "_fields" not in cls.__dict__:
            with _resolving:
                if "_fields" not in cls.__dict__:
                    fields = tuple(_field(cls, name, hint) for name, hint in cls.__annotations__.items())
                    for each in fields:
                        if isinstance(cls.__dict__.get(each.name), FieldSpec):
                            if each.default is MISSING:
                                delattr(cls, each.name)
                            else:
                                setattr(cls, each.name, each.default)
                    cls._fields = fields
        return cls._fields

    @classmethod
    def _is_flexible(cls, version: int, flexible: bool | None) -> bool:
        return version in cls.flexible if flexible is None else flexible

    def encode(self, *, version: int, flexible: bool | None = None) -> bytes:
        """Encodes the structure in a version.

        :param flexible: by default, whether the class is flexible in that version
        """
        parts: list[Buffer] = []
        cls = type(self)
        compiler.writer(cls, version, cls._is_flexible(version, flexible))(self, parts, [])
        return b"".join(parts)

    @classmethod
    def decode(cls, data: Buffer, *, version: int, flexible: bool | None = None, at: int = 0) -> Self:
        """Decodes the structure at ``data[at]``. Bytes after it are ignored, as in Apache Kafka.

        :raises MalformedMessage: it cannot be decoded; no other exception is raised
        """
        value: Self = cls.decode_from(data, at, version=version, flexible=flexible)[0]
        return value

    @classmethod
    def decode_from(cls, data: Buffer, at: int, *, version: int, flexible: bool | None = None) -> tuple[Self, int]:
        """Decodes the structure at ``data[at]``, and returns it with its end. See :meth:`decode`."""
        read = compiler.reader(cls, version, cls._is_flexible(version, flexible))
        try:
            found: tuple[Self, int] = read(data, at)
        except compiler.UNREADABLE as error:
            raise compiler.malformed_message(cls, version, error) from error
        return found

    def __repr__(self) -> str:
        """Shows bytes by their size, since they may be secret, or large."""
        shown = []
        for each in self.wire_fields():
            value = getattr(self, each.name)
            if value != each.default:
                is_hidden = isinstance(value, memoryview) or (each.kind is BUILTIN_KINDS[bytes] and value is not None)
                shown.append(f"{each.name}=<{len(value)} bytes>" if is_hidden else f"{each.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _same(getattr(self, each.name), getattr(other, each.name), each.is_array) for each in self.wire_fields()
        )


def _same(one: Any, other: Any, is_array: bool) -> bool:
    if is_array and one is not None and other is not None:
        return list(one) == list(other)
    return bool(one == other)
