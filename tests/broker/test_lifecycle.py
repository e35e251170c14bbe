"""A broker's registration and heartbeats, against a fake controller."""

from random import Random

import pytest

from barnabas.broker.lifecycle import Lifecycle, State
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.errors import DuplicateBrokerRegistration, NetworkException, RequestTimedOut
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

EPOCH = 50


class Controller:
    """The channel to the controller: records requests, for responses of the test."""

    is_local = False

    def __init__(self):
        self.sent = []

    def send(self, request, done, *, timeout_ms=None):
        self.sent.append((request, done))

    def answer(self, *, error=None, **fields):
        """Responds to the oldest request, and returns it."""
        request, done = self.sent.pop(0)
        if error is not None:
            done(None, error)
        else:
            done(response_to(request)(**fields), None)
        return request


def response_to(request):
    return BrokerHeartbeatResponse if isinstance(request, BrokerHeartbeatRequest) else BrokerRegistrationResponse


class Node:
    def __init__(self):
        self.clock = ManualClock()
        self.controller = Controller()
        self.offset = 0
        self.said = []
        self.lifecycle = Lifecycle(
            4,
            self.controller,
            scheduler=self.clock,
            random=Random(0),
            settings=lambda: BrokerConfig.from_properties({}),
            metadata_offset=lambda: self.offset,
        )
        request = BrokerRegistrationRequest(
            broker_id=4, cluster_id="c", incarnation_id=bytes(16), listeners=[], features=[], rack=None
        )
        self.lifecycle.register(request, self.said.append)

    @property
    def state(self):
        return self.lifecycle.state

    def running(self):
        self.controller.answer(broker_epoch=EPOCH)
        self.offset = EPOCH
        self.controller.answer(is_caught_up=True, is_fenced=False)
        return self


@pytest.fixture
def node():
    return Node()


def test_it_registers_and_runs_once_it_is_unfenced(node):
    assert node.state is State.STARTING
    node.controller.answer(broker_epoch=EPOCH)
    assert (node.lifecycle.epoch, node.state, node.said) == (EPOCH, State.RECOVERY, [])
    heartbeat = node.controller.answer(is_fenced=True)
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset, heartbeat.want_fence) == (EPOCH, 0, False)
    node.offset = EPOCH - 1
    node.lifecycle.applied()
    assert node.controller.sent == []
    node.offset = EPOCH
    node.lifecycle.applied()  # immediately, instead of after broker.heartbeat.interval.ms
    heartbeat = node.controller.answer(is_caught_up=True, is_fenced=False)
    assert heartbeat.current_metadata_offset == EPOCH
    assert (node.state, node.said) == (State.RUNNING, [None])


def test_heartbeats_go_on(node):
    node.running()
    for _ in range(3):
        node.clock.advance(1.9)
        assert node.controller.sent == []
        node.clock.advance(0.1)
        assert not node.controller.answer(is_fenced=False).want_shut_down


def test_a_broker_of_the_only_controller_needs_no_heartbeats(node):
    node.controller.is_local = True
    node.running()
    node.clock.advance(86_400)
    assert node.controller.sent == []


@pytest.mark.parametrize("failure", [{"error": NetworkException()}, {"error_code": DuplicateBrokerRegistration.code}])
def test_a_registration_is_tried_again_for_a_minute(node, failure):
    tries = 0
    while not node.said:
        if node.controller.sent:
            node.controller.answer(**failure)
            tries += 1
        node.clock.advance(0.1)
    assert isinstance(node.said[0], RequestTimedOut)
    assert 10 < tries < 20  # with a growing back-off


def test_a_lost_heartbeat_is_sent_again(node):
    node.running()
    node.clock.advance(2)
    node.controller.answer(error=NetworkException())
    node.clock.advance(0.11)
    node.controller.answer(is_fenced=False)
    assert node.state is State.RUNNING


def test_a_broker_that_was_fenced_goes_on(node):
    node.running()
    node.clock.advance(2)
    node.controller.answer(is_fenced=True)
    assert node.state is State.RECOVERY
    node.clock.advance(2)
    node.controller.answer(is_fenced=False)
    assert (node.state, node.said) == (State.RUNNING, [None])


def test_failed_directories_are_told_at_once_and_from_then_on(node):
    node.running()
    failed = bytes(15) + b"\7"
    node.lifecycle.directories_offline([failed])
    assert node.controller.answer(is_fenced=False).offline_log_dirs == [failed]
    node.clock.advance(2)
    assert node.controller.answer(is_fenced=False).offline_log_dirs == [failed]


def test_what_comes_while_a_heartbeat_is_in_flight_goes_with_the_next_one(node):
    node.running()
    node.clock.advance(2)
    node.lifecycle.directories_cordoned([bytes(16)])
    assert len(node.controller.sent) == 1
    assert node.controller.answer(is_fenced=False).cordoned_log_dirs is None
    assert node.controller.answer(is_fenced=False).cordoned_log_dirs == [bytes(16)]


def test_it_stops_when_the_controller_has_moved_its_leaders(node):
    node.running()
    stopped = []
    node.lifecycle.shut_down(lambda: stopped.append(True))
    assert node.controller.answer(is_fenced=False, should_shut_down=False).want_shut_down
    assert (node.state, stopped) == (State.PENDING_CONTROLLED_SHUTDOWN, [])
    node.clock.advance(0.05)
    node.controller.answer(is_fenced=False, should_shut_down=True)
    assert (node.state, stopped) == (State.SHUTTING_DOWN, [True])
    node.clock.advance(60)
    assert node.controller.sent == []


def test_it_stops_when_no_controller_answers_for_a_session(node):
    node.running()
    stopped = []
    node.lifecycle.shut_down(lambda: stopped.append(True))
    node.controller.answer(error=NetworkException())  # after a lost connection the request is repeated
    assert (node.state, stopped) == (State.PENDING_CONTROLLED_SHUTDOWN, [])
    node.clock.advance(0.2)
    node.controller.answer(error=RequestTimedOut())
    assert (node.state, stopped) == (State.SHUTTING_DOWN, [True])


def test_one_that_never_registered_stops_at_once(node):
    stopped = []
    node.lifecycle.shut_down(lambda: stopped.append(True))
    assert stopped == [True]
    node.controller.answer(broker_epoch=EPOCH)
    assert node.controller.sent == []


def test_a_higher_metadata_version_is_registered_for(node):
    node.running()
    node.lifecycle.register_again()
    node.controller.answer(broker_epoch=EPOCH + 9)
    assert (node.lifecycle.epoch, node.state) == (EPOCH + 9, State.RUNNING)


@pytest.mark.parametrize("failure", [{"error": NetworkException()}, {"error_code": DuplicateBrokerRegistration.code}])
def test_a_refused_registration_for_a_higher_metadata_version_is_repeated(node, failure):
    node.running()
    node.lifecycle.register_again()
    node.controller.answer(**failure)
    node.clock.advance(2)
    requests = [request for request, _ in node.controller.sent if isinstance(request, BrokerRegistrationRequest)]
    assert len(requests) == 1


def test_a_stopped_broker_does_not_register_again(node):
    node.running()
    node.lifecycle.register_again()
    node.lifecycle.stop()
    node.controller.answer(error=NetworkException())
    node.clock.advance(60)
    assert node.controller.sent == []
