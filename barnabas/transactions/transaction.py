"""One transactional id: its facts, and the changes to them.

Knows nothing of logs, markers or other ids. A change is prepared first, which holds back others, and takes effect when
its record is written (Kafka's ``TransactionMetadata``).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import KafkaError, ProducerFenced
from barnabas.transactions.messages import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Overtaken,
    Path,
    ProducerIdentity,
    TopicPartition,
)
from barnabas.transactions.states import COMPLETED, FROM, IDLE, State

LAST_EPOCH = (1 << 15) - 1
"""The largest int16. No client gets it: it is left to fence the client that has the one before."""

NO_TIMESTAMP = -1


NO_SESSIONS: Mapping[Path, int] = {}

EPOCH_RISES = 2
"""From this transaction.version on, each end raises the epoch (KIP-890)."""

NOTHING: Mapping[TopicPartition, None] = {}


def is_exhausted(producer_epoch: int) -> bool:
    """Returns whether a client with this epoch cannot get the next one."""
    return producer_epoch >= LAST_EPOCH - 1


class Facts(NamedTuple):
    """The state of a transactional id: what its record says, and the epoch before. Immutable."""

    state: State
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    partitions: Mapping[TopicPartition, None] = NOTHING
    """The transaction's partitions, in the order in which they were added; while it ends, those without a marker."""
    start_time_ms: int = NO_TIMESTAMP
    """When the first partition was added to the open or last transaction."""
    update_time_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change, mostly the same."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after this transaction, if its epochs have run out."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch of the client before this one, which identifies a repeated request. Not in the log."""
    client_version: int = 0
    """The transaction.version of the client that made the last change: 0 or 2."""

    @property
    def epoch_rises(self) -> bool:
        return self.client_version >= EPOCH_RISES

    @property
    def is_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)


class Transaction:
    """A transactional id, and the change to it that is under way."""

    __slots__ = ("completing", "facts", "has_failed_fence", "pending", "sessions", "transactional_id", "writing")

    def __init__(self, transactional_id: str, facts: Facts) -> None:
        self.transactional_id = transactional_id
        self.facts = facts
        self.pending: State | None = None
        """The state that is being written. Other changes have to wait."""
        self.writing: Callable[[KafkaError | None], object] | None = None
        """Called when the record that is being written is safe, or with the error."""
        self.completing: Facts | None = None
        """The facts after its markers are written, while they are being written."""
        self.has_failed_fence = False
        """A raised epoch could not be written: the next attempt does not raise it again."""
        self.sessions = NO_SESSIONS
        """The newest session by which the producer has sent something in this epoch, for each :class:`Path`."""

    def check_session(self, producer: ProducerIdentity) -> None:
        """Remembers by which session the producer sends, if it is the one that has this id and epoch.

        A client gives a connection up before it opens another. What comes by the old one after that is late, and may
        be about a transaction that has ended since: where the epoch stays the same, nothing else tells.

        :raises Overtaken: it has sent something by a newer session
        """
        if not producer.session or producer[1:3] != (self.facts.producer_id, self.facts.producer_epoch):
            return
        newest = self.sessions.get(producer.path, 0)
        if producer.session < newest:
            raise Overtaken(f"the producer of {self.transactional_id} has a newer connection")
        if producer.session > newest:
            self.sessions = {**self.sessions, producer.path: producer.session}

    @property
    def state(self) -> State:
        return self.facts.state

    def prepare(self, facts: Facts) -> Facts:
        """Returns the facts to write. Other changes have to wait until they are written, or refused."""
        former = self.facts
        assert self.pending is None, f"{self.transactional_id} is becoming {self.pending!r} already"
        assert former.state in FROM[facts.state], f"{self.transactional_id}: {former.state!r} to {facts.state!r}"
        assert facts.previous_producer_id == former.producer_id
        self.pending = facts.state
        return facts

    # ---------------------------------------------------------- InitProducerId

    def raise_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Facts:
        """Prepares the next epoch, for a producer that starts, or that goes on after an error with its epoch (KIP-360).

        :raises ProducerFenced: another producer has begun since
        """
        facts = self.facts
        epoch, last_epoch = facts.producer_epoch + 1, facts.producer_epoch
        if expected_epoch is None:
            last_epoch = NO_PRODUCER_EPOCH
        elif facts.producer_epoch != NO_PRODUCER_EPOCH and expected_epoch != facts.producer_epoch:
            if expected_epoch != facts.last_producer_epoch:
                raise ProducerFenced
            epoch, last_epoch = facts.producer_epoch, facts.last_producer_epoch  # it asks again
        return self._emptied(facts.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def rotate(self, producer_id: int, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Facts:
        """Prepares another producer id with epoch 0, where :meth:`raise_epoch` has no epoch left."""
        last_epoch = NO_PRODUCER_EPOCH if expected_epoch is None else self.facts.producer_epoch
        return self._emptied(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _emptied(self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Facts:
        self.sessions = NO_SESSIONS
        return self.prepare(
            self.facts._replace(
                state=State.EMPTY,
                previous_producer_id=self.facts.producer_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                timeout_ms=timeout_ms,
                partitions=NOTHING,
                start_time_ms=NO_TIMESTAMP,
                update_time_ms=now_ms,
            )
        )

    def fence(self) -> None:
        """Raises the epoch above the client's, before an abort that does not raise it itself.

        The raised one counts at once. Where the abort then cannot be written, the next attempt has it already.
        """
        facts = self.facts
        assert self.pending is None and facts.state in FROM[State.PREPARE_EPOCH_FENCE]
        epoch = facts.producer_epoch
        if epoch < LAST_EPOCH and not self.has_failed_fence:
            epoch += 1
        self.facts = facts._replace(producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    # ------------------------------------------------- the transaction's life

    def add(self, partitions: Sequence[TopicPartition], client_version: int, now_ms: int) -> Facts:
        """Prepares to add partitions. The first one begins the transaction."""
        facts = self.facts
        return self.prepare(
            facts._replace(
                state=State.ONGOING,
                previous_producer_id=facts.producer_id,
                partitions={**facts.partitions, **dict.fromkeys(partitions)},
                start_time_ms=now_ms if facts.state in IDLE else facts.start_time_ms,
                update_time_ms=now_ms,
                client_version=client_version,
            )
        )

    def decide(self, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int) -> Facts:
        """Prepares the decision to commit or abort."""
        facts = self.facts
        epoch, last_epoch = facts.producer_epoch, facts.last_producer_epoch
        if client_version >= EPOCH_RISES:
            epoch, last_epoch = min(epoch + 1, LAST_EPOCH), epoch
        return self.prepare(
            facts._replace(
                state=State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT,
                previous_producer_id=facts.producer_id,
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                next_producer_id=next_producer_id,
                start_time_ms=now_ms if facts.state in IDLE else facts.start_time_ms,
                update_time_ms=now_ms,
                client_version=client_version,
            )
        )

    def complete(self, now_ms: int) -> Facts:
        """Prepares the completed state, after all markers are written."""
        facts = self.facts
        self.has_failed_fence = False
        producer_id, epoch = facts.producer_id, facts.producer_epoch
        if facts.epoch_rises and facts.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = facts.next_producer_id, 0
        return self.prepare(
            facts._replace(
                state=COMPLETED[facts.state],
                previous_producer_id=facts.producer_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                next_producer_id=NO_PRODUCER_ID,
                partitions=NOTHING,
                update_time_ms=now_ms,
            )
        )
