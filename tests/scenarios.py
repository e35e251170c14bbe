"""Scenario files: commands above a ``----``, their output below it; ``pytest --rewrite`` writes the current output.

A line that starts with # is a comment. The commands are those of a World, in the conftest.py beside the scenarios.
"""

import shlex
from collections.abc import Callable
from pathlib import Path


class Speaker:
    """The part of a World that runs commands: ``verb word option=value`` calls ``do_verb([word], {option: value})``.

    A command prints by :meth:`say`.
    """

    def __init__(self) -> None:
        self.printed: list[str] = []

    def command(self, line: str) -> str:
        """Runs one line, and returns what it printed."""
        verb, *words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        getattr(self, "do_" + verb)([word for word in words if "=" not in word], options)
        printed, self.printed = self.printed, []
        return "\n".join(printed)

    def say(self, text: str) -> None:
        self.printed.append(text)


def play(path: Path, command: Callable[[str], str], *, rewrite: bool) -> None:
    """Runs the commands of the file, and compares their output with the file's."""
    steps = [step.partition("\n----") for step in path.read_text().rstrip("\n").split("\n\n")]
    printed = []
    for commands, _, _ in steps:
        lines = [line for line in commands.splitlines() if line and not line.startswith("#")]
        printed.append("\n".join(filter(None, map(command, lines))))
    if rewrite:
        rewritten = [f"{commands}\n----\n{out}".rstrip() for (commands, _, _), out in zip(steps, printed, strict=True)]
        path.write_text("\n\n".join(rewritten) + "\n")
        return
    for (commands, _, expected), out in zip(steps, printed, strict=True):
        assert out == expected.strip("\n"), f"{path.name} prints\n\n{out}\n\nafter\n\n{commands}"
