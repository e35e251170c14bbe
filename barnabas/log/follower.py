"""A follower: makes a log a copy of another one, by the rules of Apache Kafka's fetcher threads (KIP-101, KIP-595).

Knows nothing of where the other log is, nor of time. The caller fetches :attr:`Follower.position` from a source and
passes the answer to :meth:`Follower.apply`, again and again. The source is a :class:`LogSource` when a log is moved
between directories. For a replica it is the leader on another broker: a :class:`Position` has the fields of a Fetch
request, and :class:`Fetched` those of its response.
"""

import logging
from typing import NamedTuple

from barnabas.errors import CorruptMessage, OffsetOutOfRange
from barnabas.log.files import Data
from barnabas.log.follower_checks import ANY_EPOCH
from barnabas.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)


class Position(NamedTuple):
    """Where a follower continues."""

    fetch_offset: int
    last_fetched_epoch: int  #: the leader epoch of the record before; -1 when it is not known


class EpochEnd(NamedTuple):
    """A leader epoch of the source, and the offset at which it ends there."""

    epoch: int
    end_offset: int


class Fetched(NamedTuple):
    """A source's answer."""

    data: Data  #: whole batches from the fetch offset on; empty at the source's end and when the logs diverge
    high_watermark: int  #: of the source
    log_start_offset: int  #: of the source
    diverging_epoch: EpochEnd | None = None
    """The source's largest epoch up to the last fetched one, if that ends before the fetch offset or is smaller."""


class Follower:
    """The copying side of a log."""

    __slots__ = ("log",)

    def __init__(self, log: PartitionLog) -> None:
        self.log = log

    @property
    def position(self) -> Position:
        """What to fetch next."""
        return Position(self.log.log_end_offset, self.log.latest_epoch)

    def apply(self, fetched: Fetched, now_ms: int, leader_epoch: int = ANY_EPOCH) -> int:
        """Appends what was fetched at :attr:`position`, or truncates the log where it diverges from the source.

        Returns the number of bytes that were fetched for that. Also takes over the source's high watermark and log
        start offset, as far as the log reaches.

        :param leader_epoch: in which the log follows its leader; batches of a later one are not appended
        :raises CorruptMessage: a batch is corrupt; nothing is appended
        :raises OffsetOutOfRange: the batches do not follow the log's end; nothing is appended
        :raises UnknownLeaderEpoch: the first batch is of a later epoch; nothing is appended
        :raises KafkaStorageError: the disk fails or has failed
        """
        if fetched.diverging_epoch is not None:
            self._truncate(fetched.diverging_epoch, now_ms)
            return 0
        if fetched.log_start_offset >= self.log.log_end_offset:
            self._remove_uncertain(fetched.log_start_offset, now_ms, leader_epoch)
        if fetched.data and not self._append(fetched, now_ms, leader_epoch):
            return 0
        log = self.log
        log.maybe_set_high_watermark(min(fetched.high_watermark, log.log_end_offset))
        log.delete_records_before(min(fetched.log_start_offset, log.high_watermark))
        return len(fetched.data)

    def _remove_uncertain(self, log_start_offset: int, now_ms: int, leader_epoch: int) -> None:
        """Removes the log, of which the source has deleted everything, if some of it may never have been committed.

        The source may have no epoch as old as that of the log's last record. Then neither side can tell whether the
        records above the high watermark are the same. Apache Kafka's follower keeps them
        (``LeaderEpochFileCache.endOffsetFor``, ``ProducerStateManager.onLogStartOffsetIncremented``): as a leader, it
        takes a batch that a producer sends again for one of them, and has them again if a power cut undoes the log
        start offset.

        :param log_start_offset: of the source
        """
        log = self.log
        if log.high_watermark < log.log_end_offset and log.latest_epoch < leader_epoch < ANY_EPOCH:
            logger.info(
                "%s: the leader has deleted its records, so those from %d on cannot be compared; continuing at %d",
                log.directory,
                log.high_watermark,
                log_start_offset,
            )
            log.truncate_fully_and_start_at(log_start_offset, now_ms)

    def _append(self, fetched: Fetched, now_ms: int, leader_epoch: int) -> bool:
        log = self.log
        base_offset = int.from_bytes(fetched.data[:8])
        if base_offset < log.log_end_offset:
            if log.size:
                logger.warning(
                    "%s ends at offset %d, inside of a batch of its source: copying it again",
                    log.directory,
                    log.log_end_offset,
                )
                log.truncate_fully_and_start_at(fetched.log_start_offset, now_ms)
                return False
            log.truncate_fully_and_start_at(base_offset, now_ms)  # the log start offset is in the middle of a batch
        log.append_as_follower(fetched.data, now_ms=now_ms, leader_epoch=leader_epoch)
        return True

    def _truncate(self, diverging: EpochEnd, now_ms: int) -> None:
        """Truncates the log to the last offset up to which both logs may be equal.

        Where the log does not have the source's epoch, this is the end of its own largest epoch below. The next fetch
        then finds out whether the logs are equal up to there (``AbstractFetcherThread.getOffsetTruncationState``).
        """
        epoch, end_offset = self.log.end_offset_for_epoch(diverging.epoch)
        if epoch == diverging.epoch:
            end_offset = min(end_offset, diverging.end_offset)
        elif epoch < 0:
            end_offset = diverging.end_offset
        self._truncate_to(min(end_offset, self.log.log_end_offset), now_ms)

    def _truncate_to(self, offset: int, now_ms: int) -> None:
        log = self.log
        if offset < log.high_watermark:
            logger.warning(
                "Truncating %s to offset %d, below its high watermark %d", log.directory, offset, log.high_watermark
            )
        log.truncate_to(offset, now_ms)

    def handle_out_of_range(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> bool:
        """Truncates the log after the source has answered OFFSET_OUT_OF_RANGE, if that helps.

        Returns False where the log ends within the source's. A replica then fetches again from the leader, whose log
        has become longer (``AbstractFetcherThread.fetchOffsetAndTruncate``).

        :param log_start_offset: of the source
        :param log_end_offset: of the source
        :raises KafkaStorageError: the disk fails or has failed
        """
        end = self.log.log_end_offset
        if log_end_offset < end:
            self._truncate_to(log_end_offset, now_ms)
        elif log_start_offset > end:
            self.log.truncate_fully_and_start_at(log_start_offset, now_ms)
        else:
            return False
        return True


class LogSource:
    """A log of this broker as the source of a follower. Answers as a leader answers Fetch."""

    __slots__ = ("log",)

    def __init__(self, log: PartitionLog) -> None:
        self.log = log

    def fetch(self, position: Position, max_bytes: int) -> Fetched:
        """Returns batches of up to ``max_bytes``, and at least one, up to the log's end.

        :raises OffsetOutOfRange: the position is not in the log, or its epoch is not known
        :raises CorruptMessage: the log is corrupt at that place
        :raises KafkaStorageError: the disk fails or has failed
        """
        log = self.log
        offset, last_epoch = position
        diverging = None
        if last_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(last_epoch)
            if epoch < 0 or offset < log.log_start_offset:
                raise OffsetOutOfRange
            if epoch < last_epoch or end_offset < offset:
                diverging = EpochEnd(epoch, end_offset)
        data = b""
        if diverging is None:
            data = log.read(offset, max_bytes, up_to=log.log_end_offset, minimum_one=True)
            if not data and offset < log.log_end_offset:
                raise CorruptMessage(f"{log.directory} has no batch at offset {offset}, and does not end there.")
        return Fetched(data, log.high_watermark, log.log_start_offset, diverging)
