"""The share groups of a coordinator, as a scenario file tells of them: see share_world.py."""

import pytest

from tests.groups.share.share_world import World


@pytest.fixture
def world() -> World:
    return World()
