"""The state machine in scenario files. tests/scenarios.py reads them, conftest.py has their commands."""

from pathlib import Path

import pytest

from tests.scenarios import play

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, world, request: pytest.FixtureRequest) -> None:
    play(path, world.command, rewrite=request.config.getoption("--rewrite"))
