"""The world of the scenarios of streams groups: see machine.py."""

import pytest

from tests.groups.streams.machine import World


@pytest.fixture
def world() -> World:
    return World()
