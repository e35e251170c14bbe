"""The life of a broker in its cluster: registration, heartbeats, fencing and controlled shutdown.

Knows nothing of partitions, nor of how a request reaches the active controller. Apache Kafka's
``BrokerLifecycleManager`` (KIP-631).
"""

import logging
from collections.abc import Callable, Collection
from enum import Enum
from random import Random
from typing import Protocol

from barnabas.clock import Scheduler, Timer
from barnabas.config.settings import Settings
from barnabas.errors import KafkaError, RequestTimedOut
from barnabas.peers.peers import Done, error_of
from barnabas.wire.message import Request
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

logger = logging.getLogger(__name__)

FIRST_BACKOFF_S, JITTER = 0.1, 0.02
"""The delay before the n-th retry is ``FIRST_BACKOFF_S`` times two to the n-th, plus or minus the jitter."""

SHUTDOWN_INTERVAL_S = 0.05
"""The delay between heartbeats while the controller moves leaders away from a broker that stops."""


class State(Enum):
    """The state of a broker (``BrokerState``)."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Channel(Protocol):
    """The channel to the active controller (:class:`barnabas.broker.controller_channel.ControllerChannel`)."""

    @property
    def is_local(self) -> bool:
        """Whether this node is the active controller, of a quorum without other voters."""

    def send(self, request: Request, done: Done, *, timeout_ms: int | None = None) -> None: ...


class Lifecycle:
    """The registration of one broker.

    :param metadata_offset: returns the last offset of the metadata log that the broker has applied
    """

    def __init__(
        self,
        node_id: int,
        channel: Channel,
        *,
        scheduler: Scheduler,
        random: Random,
        settings: Callable[[], Settings],
        metadata_offset: Callable[[], int],
    ) -> None:
        self.state = State.NOT_RUNNING
        self.epoch = -1  #: the broker epoch of the registration; -1 before it
        self._node_id = node_id
        self._channel = channel
        self._scheduler = scheduler
        self._random = random
        self._settings = settings
        self._metadata_offset = metadata_offset
        self._registration: BrokerRegistrationRequest
        self._registered: Callable[[KafkaError | None], object] | None = None
        self._shut_down: Callable[[], object] | None = None
        self._failures = 0
        self._timer: Timer | None = None
        self._deadline: Timer | None = None
        self._is_sending = False
        self._sends_again = False
        self._sent_offset = -1
        self._offline: set[bytes] = set()
        self._cordoned: list[bytes] | None = None  # None: there is no change to report

    # ------------------------------------------------------------ registration

    def register(self, registration: BrokerRegistrationRequest, done: Callable[[KafkaError | None], object]) -> None:
        """Registers the broker, and calls ``done(None)`` when it has been unfenced.

        ``done`` gets the controller's last error if it takes longer than ``initial.broker.registration.timeout.ms``.
        """
        self._registration = registration
        self._registered = done
        self.state = State.STARTING
        timeout_ms = self._settings()["initial.broker.registration.timeout.ms"]
        self._deadline = self._scheduler.call_later(timeout_ms / 1000, self._give_up)
        self._register()

    def register_again(self) -> None:
        """Registers the same incarnation again, since a registration has more fields at a higher metadata.version.

        Repeats that until the controller accepts it.
        """
        if self.state is not State.SHUTTING_DOWN:
            self._channel.send(self._registration, self._answered_again)

    def _answered_again(self, response: BrokerRegistrationResponse | None, error: KafkaError | None) -> None:
        error = error if response is None else error_of(response.error_code)
        if error is not None:
            logger.warning("Cannot register broker %d again: %s", self._node_id, error)
            self._scheduler.call_later(self._settings()["broker.heartbeat.interval.ms"] / 1000, self.register_again)
        else:
            assert response is not None
            self.epoch = response.broker_epoch

    def _register(self) -> None:
        self._timer = None
        self._channel.send(self._registration, self._answered)

    def _answered(self, response: BrokerRegistrationResponse | None, error: KafkaError | None) -> None:
        if self.state is not State.STARTING:
            return
        error = error if response is None else error_of(response.error_code)
        if response is None or error is not None:
            logger.warning("The controller does not register broker %d: %s", self._node_id, error)
            self._wait(self._backoff(), self._register)
            return
        self._failures = 0
        self.epoch = response.broker_epoch
        self.state = State.RECOVERY
        logger.debug("Registered broker %d with epoch %d", self._node_id, self.epoch)
        self._beat()

    def _give_up(self) -> None:
        self._deadline = None
        self._finish(RequestTimedOut(f"Broker {self._node_id} has not been registered and unfenced in time"))

    def _finish(self, error: KafkaError | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        done, self._registered = self._registered, None
        if done is not None:
            done(error)

    # ------------------------------------------------------------ heartbeats

    def applied(self) -> None:
        """Notes that the broker has applied more of the metadata log.

        A fenced broker may be unfenced now: it has to have applied its own registration, whose first record's offset is
        the broker epoch.
        """
        offset = self._metadata_offset()
        if self.state is State.RECOVERY and offset > self._sent_offset and offset >= self.epoch:
            self._beat()

    def directories_offline(self, directories: Collection[bytes]) -> None:
        """Reports log directories that have failed (KIP-858). All further heartbeats name them."""
        self._offline.update(directories)
        self._beat()

    def directories_cordoned(self, directories: list[bytes]) -> None:
        """Reports which log directories take no new partitions (KIP-1066)."""
        if self._cordoned != directories:
            self._cordoned = directories
            self._beat()

    def _beat(self) -> None:
        """Sends a heartbeat; if one is in flight, sends another one after its response."""
        if self.state not in (State.RECOVERY, State.RUNNING, State.PENDING_CONTROLLED_SHUTDOWN):
            return
        if self._is_sending:
            self._sends_again = True
            return
        self._cancel()
        self._is_sending = True
        self._sent_offset = self._metadata_offset()
        request = BrokerHeartbeatRequest(
            broker_id=self._node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._sent_offset,
            want_fence=False,
            want_shut_down=self.state is State.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=sorted(self._offline),
            cordoned_log_dirs=self._cordoned,
        )
        self._channel.send(request, self._heard, timeout_ms=self._settings()["broker.session.timeout.ms"])

    def _heard(self, response: BrokerHeartbeatResponse | None, error: KafkaError | None) -> None:
        self._is_sending = False
        error = error if response is None else error_of(response.error_code)
        if self.state is State.SHUTTING_DOWN:
            return
        if response is None or error is not None:
            logger.info("The controller refuses the heartbeat of broker %d: %s", self._node_id, error)
            if self.state is State.PENDING_CONTROLLED_SHUTDOWN and isinstance(error, RequestTimedOut):
                self._end()  # Kafka retries for five minutes; without a controller, leaders are not moved
                return
            self._wait(self._backoff(), self._beat)
            return
        self._failures = 0
        self._take(response)
        if self._sends_again:
            self._sends_again = False
            self._beat()
        elif self._timer is None and not self._channel.is_local:
            self._wait(self._settings()["broker.heartbeat.interval.ms"] / 1000, self._beat)

    def _take(self, response: BrokerHeartbeatResponse) -> None:
        if self.state is State.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._end()
            else:
                self._wait(SHUTDOWN_INTERVAL_S, self._beat)
        elif self.state is State.RECOVERY and not response.is_fenced:
            logger.info("Broker %d has been unfenced", self._node_id)
            self.state = State.RUNNING
            self._finish(None)
        elif self.state is State.RUNNING and response.is_fenced:
            logger.warning("Broker %d has been fenced", self._node_id)
            self.state = State.RECOVERY

    # ------------------------------------------------------------ shutdown

    def shut_down(self, done: Callable[[], object]) -> None:
        """Asks the controller to move leaders away from this broker, and calls ``done`` when it may stop."""
        if self.state not in (State.RECOVERY, State.RUNNING):
            self.stop()
            done()
            return
        self._shut_down = done
        self.state = State.PENDING_CONTROLLED_SHUTDOWN
        self._beat()

    def _end(self) -> None:
        done, self._shut_down = self._shut_down, None
        self.stop()
        if done is not None:
            done()

    def stop(self) -> None:
        """Sends no more requests."""
        self.state = State.SHUTTING_DOWN
        self._cancel()
        if self._deadline is not None:
            self._deadline.cancel()

    # ------------------------------------------------------------ timers

    def _backoff(self) -> float:
        """Returns the seconds to wait after another failure."""
        longest_s = self._settings()["broker.session.timeout.ms"] / 1000
        seconds = min(FIRST_BACKOFF_S * 2**self._failures, longest_s)
        self._failures += 1
        return float(seconds * self._random.uniform(1 - JITTER, 1 + JITTER))

    def _wait(self, seconds: float, then: Callable[[], object]) -> None:
        self._cancel()
        self._timer = self._scheduler.call_later(seconds, then)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
