"""Generates the functions that read and write a structure in one version, once, on first use.

Knows nothing of API keys, nor of what versions mean. The functions are plain code, which ``pdb`` can step into:

>>> from barnabas.wire.schema import Struct
>>> from barnabas.wire.types import int16, int32, string
>>> class Greeting(Struct):
...     acks: int16
...     timeout_ms: int32
...     name: string | None
>>> import inspect
>>> print(inspect.getsource(writer(Greeting, 0, False)), end="")
def write_Greeting_v0(it, parts, cuts):
    write = parts.append
    content = it.name
    if content is None:
        size, content = -1, b""
    else:
        content = content.encode()
        size = len(content)
    write(pack_hih(it.acks, it.timeout_ms, size))
    write(content)
"""

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.errors import MalformedMessage
from barnabas.wire.reading import Reader
from barnabas.wire.source import SUBJECTS, Source
from barnabas.wire.types import MISSING, Buffer
from barnabas.wire.writing import Writer

if TYPE_CHECKING:
    from barnabas.wire.schema import Struct

Read = Callable[[Buffer, int], tuple[Any, int]]
Write = Callable[[Any, list[Buffer], list[int]], None]

_readers: dict[tuple[type, int, bool], Read] = {}
_writers: dict[tuple[type, int, bool], Write] = {}

#: The exceptions that a reader raises for malformed bytes.
UNREADABLE = (IndexError, struct.error, MalformedMessage)


def reader(cls: "type[Struct]", version: int, flexible: bool) -> Read:
    """Returns ``read(data, at) -> (structure, end)``, which raises one of UNREADABLE for malformed bytes."""
    read = _readers.get((cls, version, flexible))
    if read is None:
        read = _readers[cls, version, flexible] = Reader(cls, version, flexible).compile(
            _label("read", cls, version, flexible)
        )
    return read


def writer(cls: "type[Struct]", version: int, flexible: bool) -> Write:
    """Returns ``write(structure, parts, cuts)``.

    It appends bytes to ``parts``, and the indexes of large ones to ``cuts``.
    """
    write = _writers.get((cls, version, flexible))
    if write is None:
        write = _writers[cls, version, flexible] = Writer(cls, version, flexible).compile(
            _label("write", cls, version, flexible)
        )
    return write


def _label(verb: str, cls: "type[Struct]", version: int, flexible: bool) -> str:
    return f"{verb} {cls.__module__}.{cls.__qualname__} v{version}{' flexible' if flexible else ''}"


def initializer(cls: "type[Struct]") -> Callable[..., None]:
    """Returns ``cls.__init__``, with the fields as keyword arguments."""
    fields = cls.wire_fields()
    source = Source("__init__", "self")
    parameters = ["self", "*"] if fields else ["self"]
    for field in fields:
        default = field.default
        known = "" if default is MISSING else "=" + source.refer(f"default_{field.name}", default)
        parameters.append(field.name + known)
        source(f"self.{field.name} = {field.name}")
    if not fields:
        source("pass")
    source.lines[0] = f"def __init__({', '.join(parameters)}):"
    return source.compile(f"{cls.__module__}.{cls.__qualname__}.__init__")


def source(cls: "type[Struct]", version: int) -> str:
    """Returns the source of the functions that write and read ``cls`` in a version."""
    flexible = version in cls.flexible
    return f"{Writer(cls, version, flexible).text()}\n\n{Reader(cls, version, flexible).text()}"


def malformed_message(cls: "type[Struct]", version: int, error: Exception) -> MalformedMessage:
    """Returns the error for malformed bytes, with the message, the version and the field in its text."""
    subject = ""
    traceback = error.__traceback__
    while traceback is not None:
        subjects = SUBJECTS.get(traceback.tb_frame.f_code.co_filename)
        if subjects:
            subject = subjects[traceback.tb_lineno - 1]
        traceback = traceback.tb_next
    reason = str(error) if isinstance(error, MalformedMessage) else "the bytes end too early"
    return MalformedMessage(f"{cls.__qualname__} v{version}{', ' + subject if subject else ''}: {reason}")
