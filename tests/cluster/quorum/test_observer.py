"""An observer: whom it asks, what it learns, what it removes."""

import pytest

from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.cluster.quorum.controllers import Address
from barnabas.cluster.quorum.observer import Limits
from barnabas.cluster.quorum.quorum_state import QuorumState
from barnabas.cluster.quorum.snapshots import KRaftState
from barnabas.cluster.quorum.sole_voter import only_voter
from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    BrokerNotAvailable,
    FencedLeaderEpoch,
    InconsistentClusterId,
    NetworkException,
    NotController,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownLeaderEpoch,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from tests.cluster.quorum.observing import CONTROLLER, LEADER, NODE, OTHER, Node, batch, voters_batch

# ---------------------------------------------------------------- finding the leader


def test_the_first_request_goes_to_any_controller(files):
    node = Node(files).start()
    target, kind = node.recipient()
    assert target in (LEADER, OTHER)
    assert kind is FetchRequest
    assert (node.request.current_leader_epoch, node.request.fetch_offset, node.request.last_fetched_epoch) == (0, 0, 0)


def test_the_fields_are_those_of_apaches_observer(node):
    ((_, request, _),) = node.peers.sent
    assert request.cluster_id == "the-cluster"
    assert request.replica_state.replica_id == request.replica_id == NODE
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 0, 1 << 20)
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert node.request.replica_directory_id == bytes([9]) * 16
    assert node.request.high_watermark == -1
    assert node.request.current_leader_epoch == 5


@pytest.mark.parametrize(("time_out_ms", "wait_ms"), [(2000, 500), (10_000, 500), (500, 250)])
def test_a_leader_answers_before_the_time_out_has_passed(files, time_out_ms, wait_ms):
    node = Node(files, limits=Limits(fetch_timeout_ms=time_out_ms)).start()
    ((_, request, _),) = node.peers.sent
    assert request.max_wait_ms == wait_ms


@pytest.mark.parametrize("error", [FencedLeaderEpoch, NotLeaderOrFollower])
def test_an_answer_names_the_leader(files, error):
    node = Node(files).start()
    node.fetched(error=error, leader=OTHER, epoch=3)
    assert node.observer.leadership == Leadership(OTHER, 3)
    assert node.recipient() == (OTHER, FetchRequest)
    assert node.state == QuorumState(OTHER, 3, (LEADER, OTHER))


def test_what_the_leader_answers_to_the_first_request_counts(files):
    node = Node(files).start()
    node.fetched(batch(0, "a", epoch=0), epoch=0, high_watermark=1)
    assert node.listener.take() == [Leadership(NO_NODE, 0), Leadership(LEADER, 0), "a"]


def test_a_leader_that_only_its_answer_names_can_be_reached(files):
    node = Node(files, voters=(), bootstrap=[Address("boot", 1)]).start()
    assert node.recipient() == (-2, FetchRequest)
    assert node.observer.endpoint_of(-2) == Endpoint("CONTROLLER", "boot", 1, "PLAINTEXT")
    where = FetchResponse.NodeEndpoint(node_id=4, host="four", port=94)
    node.fetched(error=FencedLeaderEpoch, leader=4, endpoints=[where])
    assert node.recipient() == (4, FetchRequest)
    assert node.observer.endpoint_of(4) == Endpoint("CONTROLLER", "four", 94, "PLAINTEXT")
    assert node.state == QuorumState(4, 5, ())


def test_while_there_is_no_leader_it_asks_all_in_turns(files):
    node = Node(files).start()
    (first, _) = node.recipient()
    node.fetched(error=NotLeaderOrFollower, leader=NO_NODE, epoch=2)
    assert node.observer.leadership == Leadership(NO_NODE, 2)
    (second, _) = node.recipient()
    assert {first, second} == {LEADER, OTHER}
    node.fetched(error=NotLeaderOrFollower, leader=NO_NODE, epoch=2)
    assert node.peers.sent == []
    node.clock.advance(0.02)
    node.recipient()


@pytest.mark.parametrize("error", [NetworkException, RequestTimedOut])
def test_another_controller_knows_who_leads_now(node, error):
    node.answer(error=error())
    assert node.recipient() == (OTHER, FetchRequest)
    node.fetched(error=FencedLeaderEpoch, leader=OTHER, epoch=6)
    assert node.recipient() == (OTHER, FetchRequest)
    assert node.listener.take() == [Leadership(OTHER, 6)]


def test_requests_go_to_a_leader_that_has_returned(node):
    node.answer(error=NetworkException())
    node.fetched(error=NotLeaderOrFollower)
    assert node.peers.sent == []
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchRequest)
    assert node.listener.take() == []


def test_requests_go_to_a_silent_leader_that_is_no_voter_in_the_log(node):
    """It has become a voter, and the leader, since this node has fetched for the last time (KAFKA-19354)."""
    node.fetched(voters_batch(0, only_voter(OTHER, bytes([2]) * 16, [CONTROLLER])))
    assert node.controllers.candidates == [OTHER]
    assert node.recipient() == (LEADER, FetchRequest)
    node.clock.advance(2.5)
    node.answer(error=RequestTimedOut())
    assert node.recipient() == (OTHER, FetchRequest)
    node.fetched(error=NotLeaderOrFollower)
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchRequest)


def test_a_leader_with_useless_responses_is_not_the_only_recipient(node):
    node.answer(FetchResponse(error_code=BrokerNotAvailable.code, responses=[]))
    assert node.recipient() == (OTHER, FetchRequest)


@pytest.mark.parametrize("error", [InconsistentClusterId, BrokerNotAvailable])
def test_an_error_of_the_whole_answer_is_a_reason_to_wait(files, error):
    node = Node(files, voters=(LEADER,)).start()
    node.answer(FetchResponse(error_code=error.code, responses=[]))
    assert node.peers.sent == []
    node.clock.advance(0.02)
    node.recipient()


@pytest.mark.parametrize("error", [FencedLeaderEpoch, NotLeaderOrFollower, UnknownLeaderEpoch, None])
def test_an_answer_from_an_earlier_epoch_changes_nothing(node, error):
    node.fetched(batch(0, "old"), error=error, epoch=4, leader=OTHER, high_watermark=1)
    assert node.observer.leadership == Leadership(LEADER, 5)
    assert node.log.log_end_offset == 0


@pytest.mark.parametrize("leader", [OTHER, NODE])
def test_an_answer_that_contradicts_the_epochs_leader_changes_nothing(node, leader):
    node.fetched(batch(0, "old"), epoch=5, leader=leader, high_watermark=1)
    assert node.observer.leadership == Leadership(LEADER, 5)
    assert node.log.log_end_offset == 0


def test_an_epoch_without_a_leader_is_taken_over(node):
    node.fetched(error=NotLeaderOrFollower, epoch=6, leader=NO_NODE)
    assert node.listener.take() == [Leadership(NO_NODE, 6)]
    assert node.state == QuorumState(-1, 6, (LEADER, OTHER))


# ---------------------------------------------------------------- what is committed


def test_what_is_fetched_is_told_when_the_high_watermark_has_passed_it(node):
    node.fetched(batch(0, "a", "b") + batch(2, "c"), high_watermark=2)
    assert node.listener.take() == ["a", "b"]
    assert (node.request.fetch_offset, node.request.last_fetched_epoch, node.request.high_watermark) == (3, 5, 2)
    node.fetched(high_watermark=3)
    assert node.listener.take() == ["c"]
    assert node.log.high_watermark == 3


def test_a_leader_that_does_not_know_the_high_watermark_tells_nothing(node):
    node.fetched(batch(0, "a"), high_watermark=-1)
    assert node.listener.take() == []
    assert node.observer.high_watermark is None


def test_the_high_watermark_never_goes_back(node):
    node.fetched(batch(0, "a", "b"), high_watermark=2)
    node.fetched(high_watermark=1)
    assert node.observer.high_watermark == 2


def test_a_batch_that_a_size_limit_has_cut_off_is_fetched_again(node):
    node.fetched(batch(0, "a") + batch(1, "b")[:-3], high_watermark=2)
    assert node.content() == batch(0, "a")
    assert node.request.fetch_offset == 1


@pytest.mark.parametrize("damage", [lambda data: data[:-1] + b"?", lambda data: batch(0, "again")])
def test_records_that_cannot_be_appended_are_fetched_again(node, damage):
    node.fetched(batch(0, "a"), high_watermark=1)
    node.fetched(damage(batch(1, "b")), high_watermark=2)
    assert node.content() == batch(0, "a")
    node.clock.advance(0.02)
    node.fetched(error=NotLeaderOrFollower)
    node.clock.advance(0.02)
    assert node.request.fetch_offset == 1
    assert node.fatal == []


def test_who_waits_is_called_when_the_first_high_watermark_is_reached(node):
    called = []
    node.observer.when_caught_up(lambda: called.append(1))
    node.fetched(batch(0, "a"), high_watermark=2)
    assert called == []
    node.fetched(batch(1, "b"), high_watermark=3)
    assert called == [1]
    node.observer.when_caught_up(lambda: called.append(2))
    assert called == [1, 2]


def test_it_appends_nothing_itself(node):
    assert not node.observer.is_leader
    with pytest.raises(NotController):
        node.observer.append([])


# ---------------------------------------------------------------- divergence


def test_what_another_leader_does_not_have_is_removed(node):
    node.fetched(batch(0, "a") + batch(1, "b"), high_watermark=1)
    node.fetched(error=FencedLeaderEpoch, epoch=6, leader=OTHER)
    node.diverged(5, 1, epoch=6, leader=OTHER)
    assert node.content() == batch(0, "a")
    node.fetched(batch(1, "c", epoch=6), epoch=6, leader=OTHER, high_watermark=2)
    assert node.listener.take() == ["a", Leadership(OTHER, 6), "c"]


def test_what_is_committed_is_not_removed(node):
    node.fetched(batch(0, "a") + batch(1, "b"), high_watermark=2)
    node.diverged(5, 1)
    assert node.log.log_end_offset == 2
    assert len(node.fatal) == 1
    assert node.peers.sent == []


# ---------------------------------------------------------------- voters


def test_voters_that_the_log_names_can_be_reached(node):
    kraft = only_voter(4, bytes([4]) * 16, [CONTROLLER])
    node.fetched(voters_batch(0, kraft), high_watermark=0)
    assert node.observer.endpoint_of(4) == CONTROLLER
    assert node.observer.kraft == KRaftState()
    node.fetched(high_watermark=2)
    assert node.observer.kraft == kraft
    node.fetched(error=FencedLeaderEpoch, epoch=6, leader=4)
    assert node.state == QuorumState(4, 6, None)


def test_voters_that_were_not_committed_are_forgotten(node):
    first, second = (only_voter(each, bytes([each]) * 16, [CONTROLLER]) for each in (4, 5))
    node.fetched(voters_batch(0, first) + voters_batch(2, second), high_watermark=2)
    assert node.controllers.candidates == [5]
    node.diverged(5, 2)
    assert node.controllers.candidates == [4]
