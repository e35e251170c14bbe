"""Scenario files: commands above a ``----``, their output below it; ``pytest --rewrite`` writes the current output.

A line that starts with # is a comment. The commands are those of a World, in the conftest.py beside the scenarios.
"""

from collections.abc import Callable
from pathlib import Path


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
