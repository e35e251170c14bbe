"""The share coordinator in scenario files, and further tests.

tests/scenarios.py reads the files, World has their commands.
"""

from pathlib import Path

import pytest

from barnabas.errors import MalformedMessage
from barnabas.share import records
from barnabas.share.messages import StateBatch
from barnabas.wire.messages.share_records import encode_key, encode_value
from tests.scenarios import play
from tests.share.coordinator_world import World, key_of

SCENARIOS = sorted((Path(__file__).parent / "coordinator_scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    play(path, World().command, rewrite=request.config.getoption("--rewrite"))


def test_a_log_that_is_tangled_is_not_waited_for():
    batches = [StateBatch(0, last, 0, 1000 - last) for last in range(1000)]
    world = World()
    world.command("init g/t/0")
    key, value = records.update(
        key_of("g/t/0"), snapshot_epoch=0, leader_epoch=0, start_offset=0, delivery_complete_count=0, batches=batches
    )
    world.log[0].append((encode_key(key), encode_value(value, 0)))
    with pytest.raises(MalformedMessage, match="offset 1"):
        world.load([0])
