"""An observer, and its files."""

import pytest

from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.errors import FencedLeaderEpoch
from barnabas.log.files import MemoryFiles
from tests.cluster.quorum.observing import LEADER, Node


@pytest.fixture
def files():
    return MemoryFiles()


@pytest.fixture
def node(files):
    """An observer that knows node 1 as the leader of epoch 5."""
    found = Node(files).start()
    found.fetched(error=FencedLeaderEpoch)
    assert found.listener.take() == [Leadership(NO_NODE, 0), Leadership(LEADER, 5)]
    return found
