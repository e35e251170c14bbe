"""Votes are read from requests and responses, and a voter that grants two of them in one epoch is found."""

from random import Random

import pytest

from barnabas.cluster.quorum.ballots import vote_request
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.elections import AskVote, LogEnd
from barnabas.wire.headers import RequestHeader
from barnabas.wire.messages.vote import VoteRequest, VoteResponse
from tests.simulation.cluster import COMBINED, CONTROLLER_PORT, SimulatedCluster
from tests.simulation.faults import Faults
from tests.simulation.loop import Life, SimulatedLoop
from tests.simulation.network import Stream, host_of
from tests.simulation.votes import Granted, Votes

VERSION = VoteRequest.versions.last


@pytest.fixture
def cluster():
    loop = SimulatedLoop()
    yield SimulatedCluster(loop, Random(1), (COMBINED,) * 3)
    loop.close()


def connection(cluster, candidate, voter, port):
    near = Stream(cluster.network, Life(str(candidate)), (host_of(str(voter)), CONTROLLER_PORT), port)
    far = Stream(cluster.network, Life(str(voter)), (host_of(str(candidate)), port), port)
    near.join(far)
    far.join(near)
    return near, far


class Asking:
    """Candidates that ask voters, each over a connection of its own."""

    def __init__(self, cluster):
        self.cluster, self.votes, self.ports = cluster, Votes(cluster), 40_000

    def ask(self, candidate, voter, epoch, *, granted=True, pre_vote=False):
        self.ports += 1
        near, far = connection(self.cluster, candidate, voter, self.ports)
        message = AskVote(ReplicaKey(voter, bytes(16)), epoch, LogEnd(0, 0), pre_vote)
        request = vote_request(message, ReplicaKey(candidate, bytes(16)), "cluster")
        header = RequestHeader(request_api_key=52, request_api_version=VERSION, correlation_id=7, client_id="")
        frame = header.encode(version=2) + request.encode(version=VERSION)
        near.write(len(frame).to_bytes(4) + frame)
        part = VoteResponse.TopicData.PartitionData(
            partition_index=0, leader_id=-1, leader_epoch=epoch, vote_granted=granted
        )
        response = VoteResponse(topics=[VoteResponse.TopicData(topic_name="__cluster_metadata", partitions=[part])])
        far.writelines(response.encode_frame(7, VERSION))


@pytest.fixture
def asking(cluster):
    return Asking(cluster)


def test_a_voter_that_votes_twice_is_found(asking):
    asking.ask(1, 2, epoch=5)
    asking.ask(1, 2, epoch=5)
    asking.ask(3, 2, epoch=6)
    assert asking.votes.doubled == []
    asking.ask(3, 2, epoch=5)
    assert asking.votes.doubled == ["2 votes for 1 and 3 in epoch 5"]


def test_a_candidate_has_voted_for_itself(asking):
    asking.ask(1, 2, epoch=5, granted=False)
    asking.ask(3, 1, epoch=5)
    assert asking.votes.doubled == ["1 votes for 1 and 3 in epoch 5"]


def test_pre_votes_and_refusals_are_no_votes(asking):
    asking.ask(1, 2, epoch=5, pre_vote=True)
    asking.ask(3, 2, epoch=5, pre_vote=True)
    asking.ask(1, 2, epoch=5, granted=False)
    asking.ask(3, 2, epoch=5)
    assert asking.votes.doubled == []


def test_an_older_copy_of_its_disk_lets_a_voter_forget(asking):
    asking.ask(1, 2, epoch=5)
    node = asking.cluster.nodes[2]
    node.put_in(node.files.survivor())
    asking.ask(3, 2, epoch=5)
    assert asking.votes.doubled == []


def test_who_listens_is_told_of_each_vote(asking):
    seen = []
    asking.votes.listeners.append(seen.append)
    asking.ask(1, 2, epoch=5)
    assert seen == [Granted("2", 5, 1)]


def test_what_is_held_arrives_when_it_is_released(cluster):
    near, far = connection(cluster, 1, 2, 40_001)
    arrived = []
    far.arrived = arrived.append
    near.is_held = True
    near.write(b"held")
    cluster.loop.call_later(1.0, cluster.loop.stop)
    cluster.loop.run_forever()
    assert arrived == []
    near.release()
    near.write(b"next")
    cluster.loop.call_later(1.0, cluster.loop.stop)
    cluster.loop.run_forever()
    assert arrived == [b"held", b"next"]


def test_a_fault_that_follows_a_nodes_message_outlives_the_node(cluster):
    faults = Faults(cluster, [], {}, Votes(cluster))
    life, done = Life("2"), []
    life.context.run(faults.later, 1.0, lambda: done.append(True))
    life.is_dead = True
    cluster.loop.run_until_complete(faults.inflict([]))
    assert done == [True]
