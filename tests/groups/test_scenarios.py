"""Scenario files: commands above a ``----``, what they print below it; ``pytest --rewrite`` writes what they print now.

A line that starts with # says why. The words are those of conftest.py's World.
"""

from pathlib import Path

import pytest

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, world, request: pytest.FixtureRequest) -> None:
    steps = [step.partition("\n----") for step in path.read_text().rstrip("\n").split("\n\n")]
    told = []
    for asked, _, _ in steps:
        lines = [line for line in asked.splitlines() if line and not line.startswith("#")]
        told.append("\n".join(filter(None, map(world.command, lines))))
    if request.config.getoption("--rewrite"):
        rewritten = [f"{asked}\n----\n{out}".rstrip() for (asked, _, _), out in zip(steps, told, strict=True)]
        path.write_text("\n\n".join(rewritten) + "\n")
        return
    assert told == [expected.strip("\n") for _, _, expected in steps]
