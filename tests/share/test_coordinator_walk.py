"""Random walks of the share coordinator: after a restart at any time it has the same state.

Snapshots, those of cold partitions, and pruning happen in between.
"""

from random import Random

import pytest

from tests.share.coordinator_world import World

KEYS = [f"{group}/{topic}/{index}" for group in "gh" for topic in "tu" for index in range(2)]


def step(chance: Random) -> str:
    key = chance.choice(KEYS)
    epochs = f"state={chance.randrange(-1, 4)} leader={chance.randrange(-1, 4)}"
    start = f"start={chance.choice((-1, chance.randrange(30)))}"
    match chance.randrange(20):
        case 0 | 1 | 2:
            return f"init {key} {epochs} {start}"
        case 3:
            return f"delete {key}"
        case 4 | 5:
            return f"read {key} {epochs}"
        case 6 | 7 | 8:
            return f"advance {chance.randrange(1, 90)}s"
        case 9:
            return "restart"
        case 10:
            return f"{chance.choice(('break', 'mend', 'mend'))}"
        case _:
            batches = []
            for _ in range(chance.randrange(4)):
                first = chance.randrange(30)
                batches.append(f"{first}-{first + chance.randrange(8)}:{chance.choice('024')}x{chance.randrange(1, 4)}")
            return f"write {key} {epochs} {start} done={chance.randrange(-1, 5)} {' '.join(batches)}"


def described(world: World) -> list[str]:
    """Returns the state of each share partition, with the epochs that it fences."""
    return [world.command(f"{verb} {key}") for key in KEYS for verb in ("read", "summary")]


def fences(world: World) -> list[str]:
    """Returns the refused epochs, without changing anything."""
    world.command("break")
    found = [
        world.command(f"write {key} state={state} leader={leader}")
        for key in KEYS
        for state in range(-1, 5)
        for leader in range(-1, 5)
    ]
    world.command("mend")
    return found


@pytest.mark.parametrize("seed", range(30))
def test_the_log_says_it_all(seed):
    chance = Random(seed)
    world = World()
    world.command(f"config updates={chance.randrange(5)} prune=1m cold=2m")
    for _ in range(150):
        world.command(step(chance))
    world.command("mend")
    known = described(world)
    world.command("restart")
    assert described(world) == known
    assert any("update" in world.record(*each) or "snapshot" in world.record(*each) for each in world.log[0])


@pytest.mark.parametrize("seed", range(10))
def test_fences_outlast_a_restart_while_the_log_is_whole(seed):
    """Once older records are pruned, a state that was initialized again has no earlier epochs."""
    chance = Random(seed)
    world = World()
    world.command(f"config updates={chance.randrange(1, 5)} prune=24h")
    for _ in range(100):
        world.command(step(chance))
    world.command("mend")
    before = fences(world)
    world.command("restart")
    assert fences(world) == before
