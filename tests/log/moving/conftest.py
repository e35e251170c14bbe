"""A node with one log, and moves in small steps."""

import pytest

from barnabas.log import moving
from tests.log.moving.node import Node


@pytest.fixture
def node():
    made = Node()
    made.create()
    return made


@pytest.fixture
def small_steps(monkeypatch):
    """Makes a few batches take several steps."""
    monkeypatch.setattr(moving, "STEP_BYTES", 150)
    monkeypatch.setattr(moving, "TAIL_BYTES", 150)
