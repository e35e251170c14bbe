"""What the active controller knows of brokers beside the log: when it last heard of each, and how far each has come.

Knows nothing of records: decisions read it, and the controller writes to it what it has heard. All of it is lost when
another controller becomes active. Apache Kafka's ``BrokerHeartbeatManager`` and ``BrokerHeartbeatTracker``.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.cluster.image.image import MetadataImage

NOTHING = -1
"""The metadata offset of a broker that has not been heard of, and the shutdown offset of one that does not stop."""


class Heard(NamedTuple):
    """What a registration or a heartbeat says of a broker, once its records are appended."""

    broker_id: int
    epoch: int
    metadata_offset: int = NOTHING
    registers: bool = False  #: forgets what was known of the broker
    fenced: bool = False
    shuts_down: bool = False  #: it is in a controlled shutdown: it may stop when others know the records before
    is_gone: bool = False  #: it has no session any more


class Known:
    """What is known of one broker."""

    __slots__ = ("epoch", "last_contact", "metadata_offset", "registered_offset", "shutdown_offset")

    def __init__(self, registered_offset: int) -> None:
        self.registered_offset = registered_offset  #: of its registration, or later
        self.metadata_offset = NOTHING
        self.shutdown_offset = NOTHING
        self.epoch = NOTHING  #: of its session
        self.last_contact: float | None = None  #: in seconds; None: it has no session


class Heartbeats:
    """The brokers by their ids.

    :param session_timeout_ms: returns ``broker.session.timeout.ms``
    :param resident: the broker of this process, if there can be no other controller: it lives as long as this one, and
        has applied what is committed
    """

    def __init__(self, clock: Clock, session_timeout_ms: Callable[[], int], *, resident: int | None = None) -> None:
        self.resident = resident
        self.on_contact: Callable[[], object] = lambda: None  #: called when a session begins that can end
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._known: dict[int, Known] = {}

    def activate(self, image: MetadataImage) -> None:
        """Gives each broker that is not fenced a session's time to be heard of."""
        self._known = {}
        for broker in image.brokers.values():
            known = self._known[broker.id] = Known(image.offset)
            if not broker.fenced and broker.id != self.resident:
                known.epoch, known.last_contact = broker.epoch, self._clock.monotonic()
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
        """Returns the offset that the broker must have applied to know of its own registration."""
        known = self._known.get(broker_id)
        return NOTHING if known is None else known.registered_offset

    def shutdown_offset(self, broker_id: int) -> int:
        known = self._known.get(broker_id)
        return NOTHING if known is None else known.shutdown_offset

    def others_know(self, offset: int, broker_id: int, image: MetadataImage) -> bool:
        """Returns whether all active brokers but this one have applied the metadata up to that offset."""
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
        """Returns the id and the epoch of a broker whose session is over; None if there is none."""
        for broker_id, known in self._known.items():
            if known.last_contact is not None and broker_id != self.resident and self._is_over(known.last_contact):
                return broker_id, known.epoch
        return None

    def _is_over(self, last_contact: float) -> bool:
        return self._clock.monotonic() - last_contact >= self._session_timeout_ms() / 1000

    # ------------------------------------------------------------ for the controller

    def heard(self, heard: Heard, end_offset: int) -> None:
        """Notes what was heard.

        :param end_offset: of the last record that is appended
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
        """When the first session will be over unless it is renewed, in seconds; None if there is none."""
        contacts = [
            known.last_contact
            for broker_id, known in self._known.items()
            if known.last_contact is not None and broker_id != self.resident
        ]
        return min(contacts) + self._session_timeout_ms() / 1000 if contacts else None

    def renew(self) -> None:
        """Begins all sessions anew, after a time in which this process could not hear."""
        for known in self._known.values():
            if known.last_contact is not None:
                known.last_contact = self._clock.monotonic()
