"""Groups with many members over real connections: all come at once, and soon each knows what to read."""

import pytest

from barnabas.testing import Broker
from benchmarks import members
from benchmarks.groups import await_coordinator

MEMBERS, PARTITIONS = 150, 300


@pytest.fixture
def port():
    with Broker() as broker:
        broker.create_topic(members.TOPIC, partitions=PARTITIONS)
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        await_coordinator(port, members.GROUP)
        yield port


CLASSIC, CONSUMER = members.ClassicMember, members.ConsumerMember


@pytest.mark.parametrize("kinds", [[CLASSIC], [CONSUMER], [CLASSIC, CONSUMER]], ids=["classic", "consumer", "both"])
def test_a_crowd_settles(port, kinds):
    members.come_together(port, kinds, MEMBERS, PARTITIONS)
