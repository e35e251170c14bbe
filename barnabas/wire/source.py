"""The text of a function while it is being written, and the objects that its lines refer to.

Knows nothing of the protocol. A finished function is ordinary code: ``pdb`` steps into it, tracebacks and
``inspect.getsource`` show its lines.
"""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Of each written function's file name: what each of its lines was about, for error messages.
SUBJECTS: dict[str, list[str]] = {}


def named(verb: str, format: str) -> str:
    """What a ``struct`` format's function is called: ``?`` has no place in a name."""
    return f"{verb}_{format.replace('?', 't')}"


class Source:
    """A function in the making.

    >>> double = Source("double", "n")
    >>> double("return n + n")
    >>> double.compile("doubling")(21)
    42
    """

    def __init__(self, name: str, parameters: str) -> None:
        self.name = name
        self.lines = [f"def {name}({parameters}):"]
        self.subjects = [""]
        self.path: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = {}
        self.locals: dict[str, int] = {}

    def __call__(self, line: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("    " * self.depth + line)
        self.subjects.append(".".join(self.path))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is added inside stands below ``head``."""
        self(head)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def about(self, subject: str) -> Iterator[None]:
        """What is added inside deals with that field."""
        self.path.append(subject)
        yield
        self.path.pop()

    def local(self, stem: str) -> str:
        """A variable's name that is not yet taken: ``each``, ``each2``, ``each3`` …"""
        self.locals[stem] = self.locals.get(stem, 0) + 1
        return stem if self.locals[stem] == 1 else f"{stem}{self.locals[stem]}"

    def refer(self, name: str, value: Any) -> str:
        """A name by which the function's lines may call ``value``."""
        found = name
        while found in self.names and self.names[found] is not value:
            found += "_"
        self.names[found] = value
        return found

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def compile(self, label: str) -> Callable[..., Any]:
        """The function; its text stays where ``linecache`` finds it, under the ``label``."""
        text, filename = self.text(), f"<barnabas {label}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        SUBJECTS[filename] = self.subjects
        exec(compile(text, filename, "exec"), self.names)
        function: Callable[..., Any] = self.names[self.name]
        return function
