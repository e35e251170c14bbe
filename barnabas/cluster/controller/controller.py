"""The active controller: turns commands into records of the metadata log, and returns results once they are committed.

Knows nothing of requests, nor of how the quorum commits records. Apache Kafka's ``QuorumController``.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from barnabas.clock import Clock
from barnabas.cluster.controller.decision import BrokerSettings, ConfigRules, Decision, Surroundings
from barnabas.cluster.controller.decisions import decide
from barnabas.cluster.controller.heartbeats import Heartbeats
from barnabas.cluster.features import METADATA_TRANSACTIONS
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.quorum.client import CommittedBatch, Leadership, QuorumClient
from barnabas.cluster.quorum.record_batches import EncodedBatch, encode_batches
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.errors import KafkaError, NotController, UnknownServerError
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

logger = logging.getLogger(__name__)

Done = Callable[[Any, KafkaError | None], object]
"""Called once with a command's result and None, or with None and the error."""


def logged(what: str) -> Done:
    """Returns a :data:`Done` for a command without a caller: it logs the error, if there is one."""

    def done(result: Any, error: KafkaError | None) -> None:
        if error is not None:
            logger.warning("Cannot record %s: %s", what, error)

    return done


class _Deferred(NamedTuple):
    """A result that is returned when the log is committed up to ``offset``, inclusive."""

    offset: int
    result: Any
    done: Done


class Controller:
    """Decides on the newest state, whose last records may not be committed yet.

    A :class:`~barnabas.cluster.quorum.client.QuorumListener` that comes after the loader of the same node: results are
    returned after the loader has applied their records.

    :param committed_image: returns the loader's image
    :param activation_records: returns the first records of a new leader, given that image

    :param resident: the id of the broker in the same process, if no other controller can become active
    """

    def __init__(
        self,
        quorum: QuorumClient,
        *,
        committed_image: Callable[[], MetadataImage],
        activation_records: Callable[[MetadataImage], Sequence[Any]],
        settings: Callable[[], BrokerSettings],
        rules: ConfigRules,
        random: Random,
        clock: Clock,
        cluster_id: str = "",
        resident: int | None = None,
    ) -> None:
        self.image = MetadataImage()  #: the newest state, while this controller is active
        self.heartbeats = Heartbeats(clock, lambda: settings()["broker.session.timeout.ms"], resident=resident)
        self._quorum = quorum
        self._committed_image = committed_image
        self._activation_records = activation_records
        self._settings = settings
        self._rules = rules
        self._random = random
        self._clock = clock
        self._cluster_id = cluster_id
        self._deferred: deque[_Deferred] = deque()

    @property
    def is_active(self) -> bool:
        """Whether this controller is active."""
        return self._quorum.is_leader

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._quorum.next_offset

    # ------------------------------------------------------------ commands

    def submit(self, command: Any, done: Done) -> None:
        """Decides on the command immediately, and calls ``done`` when its records are committed.

        A command without records is done when the state that the decision has read is committed. ``done`` gets
        NotController if this node is not the leader, or loses leadership before the records are committed,
        KafkaStorageError if they cannot be written, or the error of the decision.
        """
        try:
            result = self._decided(command)
        except KafkaError as error:
            done(None, error)
            return
        except Exception:
            logger.exception("Unexpected error in the decision on %r", command)
            done(None, UnknownServerError())
            return
        offset = self._quorum.next_offset - 1
        if self._committed_image().offset >= offset:
            done(result, None)
        elif not self._quorum.is_leader:  # the disk has failed
            done(None, NotController())
        else:
            self._deferred.append(_Deferred(offset, result, done))

    def _decided(self, command: Any) -> Any:
        if not self._quorum.is_leader:
            raise NotController
        decision = self._decide(command, self._quorum.next_offset)
        batches = self._encoded(decision.records)
        if len(batches) > 1 and self.image.metadata_version >= METADATA_TRANSACTIONS:
            # Decided again, since the BeginTransactionRecord takes the first offset.
            decision = self._decide(command, self._quorum.next_offset + 1)
            batches = self._encoded([BeginTransactionRecord(), *decision.records, EndTransactionRecord()])
        if decision.raises_kraft_version:
            self._quorum.upgrade_kraft_version()
        if batches:
            self._append(batches)
        if decision.heard is not None:
            self.heartbeats.heard(decision.heard, self._quorum.next_offset - 1)
        return decision.result

    def _decide(self, command: Any, next_offset: int) -> Decision:
        around = Surroundings(
            self._settings(),
            self._rules,
            self._random,
            self.heartbeats,
            self._cluster_id,
            next_offset=next_offset,
            kraft_version=self._quorum.kraft.version,
            time_ms=self._clock.time_ms(),
        )
        return decide(command, self.image, around)

    # ------------------------------------------------------------ the log

    def _encoded(self, records: Sequence[Any]) -> list[EncodedBatch]:
        version, epoch = self.image.metadata_version, self._quorum.leadership.epoch
        return list(encode_batches(records, metadata_version=version, timestamp=self._clock.time_ms(), epoch=epoch))

    def _append(self, batches: Sequence[EncodedBatch]) -> None:
        """Applies the records, too, before the quorum can commit them."""
        records = [record for batch in batches for record in batch.records if type(record) not in _FRAMES]
        after, _ = self.image.apply(records)
        before, self.image = self.image, after
        try:
            self._quorum.append(batches)
        except KafkaError:
            self.image = before
            raise

    def snapshot_loaded(self, snapshot_id: SnapshotId, records: Sequence[Any], timestamp: int) -> None:
        """Does nothing: a leader never loads a snapshot, and other controllers are not active."""

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        deferred, offset = self._deferred, batches[-1].last_offset
        while deferred and deferred[0].offset <= offset:
            _, result, done = deferred.popleft()
            _call(done, result, None)

    def leadership_changed(self, leadership: Leadership) -> None:
        """Becomes active, or inactive: drops uncommitted state, and fails its commands with NotController."""
        self.image = self._committed_image()
        deferred, self._deferred = self._deferred, deque()
        for each in deferred:
            _call(each.done, None, NotController())
        if not self._quorum.is_leader:
            self.heartbeats.deactivate()
            return
        self.heartbeats.activate(self.image, self._quorum.last_leader)
        if records := self._activation_records(self.image):
            self._append(self._encoded(records))


_FRAMES = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


def _call(done: Done, result: Any, error: KafkaError | None) -> None:
    """Calls ``done``. An unexpected error is logged, so that other callbacks are still called."""
    try:
        done(result, error)
    except Exception:
        logger.exception("Unexpected error in the callback of a command")
