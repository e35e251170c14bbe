"""The channel to the active controller, with fake peers."""

import pytest

from barnabas.broker.controller_channel import ControllerChannel
from barnabas.clock import ManualClock
from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.errors import ClusterAuthorizationFailed, NetworkException, NotController, RequestTimedOut
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

REQUEST = AllocateProducerIdsRequest(broker_id=4, broker_epoch=7)


class Controllers:
    """Records the requests to each controller, for responses of the test."""

    def __init__(self):
        self.clock = ManualClock()
        self.leader = 1
        self.sent = []
        self.answers = []
        self.channel = ControllerChannel(
            4,
            self,
            lambda: Leadership(self.leader, 3),
            is_sole=lambda: False,
            clock=self.clock,
            scheduler=self.clock,
            timeout_ms=lambda: 30_000,
        )

    def send(self, node_id, request, done, *, lane="", timeout_ms=None):
        self.sent.append((node_id, request, done, timeout_ms))

    def ask(self, timeout_ms=None):
        self.channel.send(
            REQUEST, lambda response, error: self.answers.append((response, error)), timeout_ms=timeout_ms
        )

    def answer(self, error_code=0, *, error=None):
        node_id, _, done, _ = self.sent.pop(0)
        done(AllocateProducerIdsResponse(error_code=error_code) if error is None else None, error)
        return node_id


@pytest.fixture
def controllers():
    return Controllers()


def test_requests_go_to_the_leader(controllers):
    controllers.ask()
    assert controllers.answer() == 1
    ((response, error),) = controllers.answers
    assert (response.error_code, error) == (0, None)


def test_other_errors_are_answers(controllers):
    controllers.ask()
    controllers.answer(ClusterAuthorizationFailed.code)
    ((response, _),) = controllers.answers
    assert response.error_code == ClusterAuthorizationFailed.code


@pytest.mark.parametrize(
    "failure",
    [{"error_code": NotController.code}, {"error": NetworkException()}, {"error": RequestTimedOut()}],
    ids=["not controller", "cut", "timed out"],
)
def test_requests_go_to_another_leader_when_the_first_has_resigned(controllers, failure):
    controllers.ask()
    assert controllers.answer(**failure) == 1
    controllers.leader = 2
    assert controllers.sent == []
    controllers.clock.advance(0.1)
    assert controllers.answer() == 2
    assert len(controllers.answers) == 1


def test_it_waits_for_a_leader(controllers):
    controllers.leader = NO_NODE
    controllers.ask()
    controllers.clock.advance(5)
    assert controllers.sent == []
    controllers.leader = 3
    controllers.clock.advance(0.1)
    assert controllers.answer() == 3


def test_the_time_goes_by(controllers):
    controllers.leader = NO_NODE
    controllers.ask(timeout_ms=1000)
    controllers.clock.advance(1.1)
    ((response, error),) = controllers.answers
    assert response is None
    assert isinstance(error, RequestTimedOut)


def test_a_late_try_has_what_is_left_of_the_time(controllers):
    controllers.ask(timeout_ms=1000)
    assert controllers.sent[0][3] == 1000
    controllers.clock.advance(0.4)
    controllers.answer(error=NetworkException())
    controllers.clock.advance(0.1)
    assert 500 <= controllers.sent[0][3] <= 560


def test_who_waits_is_told_when_the_node_stops(controllers):
    controllers.leader = NO_NODE
    controllers.ask()
    controllers.channel.close()
    ((_, error),) = controllers.answers
    assert isinstance(error, NetworkException)
    controllers.leader = 1
    controllers.ask()
    controllers.answer(error=NetworkException())
    assert len(controllers.answers) == 2
