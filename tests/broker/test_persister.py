"""Calls of the persister that are made for a group coordinator: they end with its term."""

from random import Random
from types import SimpleNamespace as Of

import pytest

from barnabas.broker.persister import Persister
from barnabas.clock import ManualClock
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from barnabas.errors import NetworkException, NotCoordinator
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateResponse

TOPIC_ID = bytes(15) + b"\7"


def initialized():
    result = InitializeShareGroupStateResponse.InitializeStateResult
    partition = result.PartitionResult(partition=0)
    return InitializeShareGroupStateResponse(results=[result(topic_id=TOPIC_ID, partitions=[partition])])


class Node:
    """A node that coordinates group ``g``, and reaches the share coordinator, node 2, as the test wants."""

    def __init__(self):
        self.node_id, self.scheduler, self.random = 1, ManualClock(), Random(0)
        self.peers, self.sent = self, []
        self.coordinates(1, epoch=4)

    def coordinates(self, node_id, *, epoch):
        offsets, states = (Of(partitions={0: Of(leader=each, leader_epoch=epoch)}) for each in (node_id, 2))
        self.image = Of(
            topics_by_name={CONSUMER_OFFSETS: offsets, SHARE_GROUP_STATE: states}, brokers={2: Of(fenced=False)}
        )

    def send(self, node_id, request, done, *, lane):
        assert node_id == 2
        self.sent.append((request, done))

    def initialize(self, persister=None):
        outcomes = {}
        (persister or Persister(self)).initialize("g", {TOPIC_ID: {0: -1}}, 3, outcomes.update)
        return outcomes


successors = pytest.mark.parametrize("successor", [(3, 5), (1, 6)], ids=["another node", "itself, later"])


@successors
def test_a_call_of_an_earlier_coordinator_is_not_repeated(successor):
    """The next coordinator has initialized the state since, and members have accepted records."""
    node = Node()
    outcomes = node.initialize()
    node.sent.pop()[1](None, NetworkException())
    node.coordinates(successor[0], epoch=successor[1])
    node.scheduler.advance(60)
    assert node.sent == []
    assert type(outcomes[TOPIC_ID, 0].error) is NotCoordinator


@successors
def test_a_call_that_waits_for_another_ends_with_its_term(successor):
    node = Node()
    persister = Persister(node)
    first, second = node.initialize(persister), node.initialize(persister)
    ((_, done),) = node.sent
    node.coordinates(successor[0], epoch=successor[1])
    done(initialized(), None)
    assert len(node.sent) == 1
    assert first[TOPIC_ID, 0].error is None
    assert type(second[TOPIC_ID, 0].error) is NotCoordinator


def test_a_call_of_the_next_term_is_sent_after_those_that_have_ended():
    node = Node()
    persister = Persister(node)
    node.initialize(persister)
    node.initialize(persister)
    node.coordinates(1, epoch=6)
    third = node.initialize(persister)
    node.sent.pop()[1](initialized(), None)
    ((_, done),) = node.sent
    done(initialized(), None)
    assert third[TOPIC_ID, 0].error is None


def test_a_call_is_repeated_in_the_same_term():
    node = Node()
    outcomes = node.initialize()
    node.sent.pop()[1](None, NetworkException())
    node.scheduler.advance(60)
    request, done = node.sent.pop()
    assert request.topics[0].partitions[0].state_epoch == 3
    done(initialized(), None)
    assert outcomes[TOPIC_ID, 0].error is None
