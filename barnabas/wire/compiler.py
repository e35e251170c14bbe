"""Makes, for one structure at one version, the functions that read and write it: once, on first use.

Knows nothing of API keys and versions' meaning. The functions are straight lines of code that ``pdb`` steps into:

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

#: What a reader raises when the bytes lie.
UNREADABLE = (IndexError, struct.error, MalformedMessage)


def reader(cls: "type[Struct]", version: int, flexible: bool) -> Read:
    """``read(data, at) -> (structure, end)``; raises one of UNREADABLE."""
    read = _readers.get((cls, version, flexible))
    if read is None:
        read = _readers[cls, version, flexible] = Reader(cls, version, flexible).compile(
            _label("read", cls, version, flexible)
        )
    return read


def writer(cls: "type[Struct]", version: int, flexible: bool) -> Write:
    """``write(structure, parts, cuts)``: adds the pieces to ``parts``, and to ``cuts`` where large ones stand."""
    write = _writers.get((cls, version, flexible))
    if write is None:
        write = _writers[cls, version, flexible] = Writer(cls, version, flexible).compile(
            _label("write", cls, version, flexible)
        )
    return write


def _label(verb: str, cls: "type[Struct]", version: int, flexible: bool) -> str:
    return f"{verb} {cls.__module__}.{cls.__qualname__} v{version}{' flexible' if flexible else ''}"


def initializer(cls: "type[Struct]") -> Callable[..., None]:
    """``cls.__init__``, with each field as a keyword argument."""
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
    """The text of the functions that write and read ``cls`` at that version."""
    flexible = version in cls.flexible
    return f"{Writer(cls, version, flexible).text()}\n\n{Reader(cls, version, flexible).text()}"


def explained(cls: "type[Struct]", version: int, error: Exception) -> MalformedMessage:
    """What was wrong with the bytes: the message, its version, the field at which it showed."""
    subject = ""
    traceback = error.__traceback__
    while traceback is not None:
        subjects = SUBJECTS.get(traceback.tb_frame.f_code.co_filename)
        if subjects:
            subject = subjects[traceback.tb_lineno - 1]
        traceback = traceback.tb_next
    reason = str(error) if isinstance(error, MalformedMessage) else "the bytes end too early"
    return MalformedMessage(f"{cls.__qualname__} v{version}{', ' + subject if subject else ''}: {reason}")
