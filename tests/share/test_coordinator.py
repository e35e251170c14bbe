"""The share coordinator, told in scenario files: how they are read is in tests/scenarios.py, their words in a World."""

from pathlib import Path

import pytest

from tests.scenarios import play
from tests.share.coordinator_world import World

SCENARIOS = sorted((Path(__file__).parent / "coordinator_scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    play(path, World().command, rewrite=request.config.getoption("--rewrite"))
