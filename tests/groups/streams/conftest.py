"""A coordinator with streams groups, and the words that scenarios are told in."""

import pytest

from tests.groups.streams.machine import World


@pytest.fixture
def world() -> World:
    return World()
