"""The active controller's unrecorded state of brokers: the last heartbeats, and the metadata offsets.

Knows nothing of records: decisions read the state, and the controller updates it. A new active controller begins with
none of it. Apache Kafka's ``BrokerHeartbeatManager`` and ``BrokerHeartbeatTracker``.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.quorum.client import LastLeader

NOTHING = -1
"""The metadata offset of a broker without a heartbeat, and the shutdown offset of one that does not shut down."""


class Heard(NamedTuple):
    """A registration or a heartbeat of a broker, once its records are appended."""

    broker_id: int
    epoch: int
    metadata_offset: int = NOTHING
    registers: bool = False  #: whether it is a registration, which resets the state
    fenced: bool = False
    shuts_down: bool = False  #: whether it is in a controlled shutdown; it may stop when other brokers know the records
    is_gone: bool = False  #: whether its session has ended


class Known:
    """The state of one broker."""

    __slots__ = ("epoch", "last_contact", "metadata_offset", "registered_offset", "shutdown_offset")

    def __init__(self, registered_offset: int) -> None:
        self.registered_offset = registered_offset  #: the offset of its registration, or a later one
        self.metadata_offset = NOTHING
        self.shutdown_offset = NOTHING
        self.epoch = NOTHING  #: the broker epoch of its session
        self.last_contact: float | None = None  #: in seconds; None: it has no session


class Heartbeats:
    """The states of brokers by their ids.

    :param session_timeout_ms: returns ``broker.session.timeout.ms``
    :param resident: the broker of this process, if there can be no other controller: its session never expires, and it
        has applied all committed records
    """

    def __init__(self, clock: Clock, session_timeout_ms: Callable[[], int], *, resident: int | None = None) -> None:
        self.resident = resident
        self.on_contact: Callable[[], object] = lambda: None  #: called when a session begins that can expire
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._known: dict[int, Known] = {}

    def activate(self, image: MetadataImage, last_leader: LastLeader) -> None:
        """Begins a session for each broker that is not fenced.

        The session of the broker on the last active controller's node begins when that node last answered a fetch, but
        at least half of it is left: its partitions get new leaders as soon as those of any other broker that is killed.
        """
        now = self._clock.monotonic()
        since = max(last_leader.answered, now - self._session_timeout_ms() / 2000)
        self._known = {}
        for broker in image.brokers.values():
            known = self._known[broker.id] = Known(image.offset)
            if not broker.fenced and broker.id != self.resident:
                known.epoch = broker.epoch
                known.last_contact = since if broker.id == last_leader.node_id else now
        if self.next_expiry is not None:
            self.on_contact()

    def deactivate(self) -> None:
        self._known = {}

    # ------------------------------------------------------------ for decisions

    def has_session(self, broker_id: int, epoch: int) -> bool:
        known = self._known.get(broker_id)
        if known is None or known.last_contact is None or known.epoch != epoch:
            return False
        return broker_id == self.resident or not self._is_over(known.last_contact)

    def registered_offset(self, broker_id: int) -> int:
        """Returns the offset that the broker must have applied to know its own registration."""
        known = self._known.get(broker_id)
        return NOTHING if known is None else known.registered_offset

    def shutdown_offset(self, broker_id: int) -> int:
        known = self._known.get(broker_id)
        return NOTHING if known is None else known.shutdown_offset

    def others_know(self, offset: int, broker_id: int, image: MetadataImage) -> bool:
        """Returns whether all other active brokers have applied the metadata up to that offset."""
        return all(
            known.metadata_offset >= offset
            for other, known in self._known.items()
            if other not in (broker_id, self.resident) and self._is_active(other, known, image)
        )

    @staticmethod
    def _is_active(broker_id: int, known: Known, image: MetadataImage) -> bool:
        broker = image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and known.shutdown_offset == NOTHING

    def stale(self) -> tuple[int, int] | None:
        """Returns the id and the epoch of a broker whose session has expired; None if there is none."""
        for broker_id, known in self._known.items():
            if known.last_contact is not None and broker_id != self.resident and self._is_over(known.last_contact):
                return broker_id, known.epoch
        return None

    def _is_over(self, last_contact: float) -> bool:
        return self._clock.monotonic() - last_contact >= self._session_timeout_ms() / 1000

    # ------------------------------------------------------------ for the controller

    def heard(self, heard: Heard, end_offset: int) -> None:
        """Updates the state of a broker.

        :param end_offset: the offset of the last appended record
        """
        known = self._known.get(heard.broker_id)
        if known is None:
            known = self._known[heard.broker_id] = Known(end_offset)
        if heard.registers:
            last_contact, epoch = known.last_contact, known.epoch
            known = self._known[heard.broker_id] = Known(end_offset)
            if epoch == heard.epoch:  # the same incarnation registers again
                known.last_contact, known.epoch = last_contact, epoch
            return
        known.epoch, known.metadata_offset = heard.epoch, heard.metadata_offset
        began = known.last_contact is None and not heard.is_gone
        known.last_contact = None if heard.is_gone else self._clock.monotonic()
        if heard.fenced:
            known.shutdown_offset = NOTHING
        elif heard.shuts_down and known.shutdown_offset == NOTHING:
            known.shutdown_offset = end_offset
        if began and heard.broker_id != self.resident:
            self.on_contact()

    def forget(self, broker_id: int) -> None:
        self._known.pop(broker_id, None)

    @property
    def next_expiry(self) -> float | None:
        """When the first session expires unless it is renewed, in seconds; None if there is none."""
        contacts = [
            known.last_contact
            for broker_id, known in self._known.items()
            if known.last_contact is not None and broker_id != self.resident
        ]
        return min(contacts) + self._session_timeout_ms() / 1000 if contacts else None

    def extend(self, seconds: float) -> None:
        """Extends all sessions to end in this time at the earliest, after this process could not read heartbeats.

        No session gets longer than ``broker.session.timeout.ms``.
        """
        now, session = self._clock.monotonic(), self._session_timeout_ms() / 1000
        for known in self._known.values():
            if known.last_contact is not None:
                known.last_contact = max(known.last_contact, now - session + min(seconds, session))
