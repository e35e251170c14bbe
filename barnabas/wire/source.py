"""The source of a generated function, and the objects that it refers to.

Knows nothing of the protocol. A generated function is ordinary code: ``pdb`` steps into it, and tracebacks and
``inspect.getsource`` show its lines.
"""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: By the file name of a generated function: the field that each of its lines reads or writes, for error messages.
SUBJECTS: dict[str, list[str]] = {}


def named(verb: str, format: str) -> str:
    """Returns the name of a function for a ``struct`` format, with ``t`` instead of ``?``."""
    return f"{verb}_{format.replace('?', 't')}"


class Source:
    """The source of a function.

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
        """Adds a line at the current indentation."""
        self.lines.append("    " * self.depth + line)
        self.subjects.append(".".join(self.path))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Adds ``head``, and indents the lines that are added inside."""
        self(head)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def about(self, subject: str) -> Iterator[None]:
        """Marks the lines that are added inside as those of a field."""
        self.path.append(subject)
        yield
        self.path.pop()

    def local(self, stem: str) -> str:
        """Returns an unused name for a variable: ``each``, ``each2``, ``each3`` …"""
        self.locals[stem] = self.locals.get(stem, 0) + 1
        return stem if self.locals[stem] == 1 else f"{stem}{self.locals[stem]}"

    def refer(self, name: str, value: Any) -> str:
        """Returns a name for ``value`` in the function's lines."""
        found = name
        while found in self.names and self.names[found] is not value:
            found += "_"
        self.names[found] = value
        return found

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def compile(self, label: str) -> Callable[..., Any]:
        """Returns the function, and adds its source to ``linecache`` under the ``label``."""
        text, filename = self.text(), f"<barnabas {label}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        SUBJECTS[filename] = self.subjects
        exec(compile(text, filename, "exec"), self.names)
        function: Callable[..., Any] = self.names[self.name]
        return function
