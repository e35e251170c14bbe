"""The world of the scenarios of share groups: see share_world.py."""

import pytest

from tests.groups.share.share_world import World


@pytest.fixture
def world() -> World:
    return World()
