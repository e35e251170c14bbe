"""Creates the log of a partition, and opens one from a directory after a shutdown, a crash or a run of Apache Kafka.

Knows nothing of other partitions. The steps are those of Apache Kafka's ``LogLoader``: complete deletions and swaps,
check the segments after the recovery point batch by batch, load leader epochs and producers.
"""

import logging
import os

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptMessage, KafkaError
from barnabas.log import leader_epochs, swapping, upgrading
from barnabas.log.checking import Damage, Expectations, SegmentCheck
from barnabas.log.checkpoints import CorruptCheckpoint
from barnabas.log.files import Files
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.limits import MAX_OFFSET
from barnabas.log.offset_index import CorruptIndex
from barnabas.log.partition_log import LogServices, PartitionLog
from barnabas.log.producer_loading import load_producers
from barnabas.log.producer_state import ProducerState
from barnabas.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    TXN_INDEX_SUFFIX,
    Segment,
)
from barnabas.log.transaction_index_check import is_transaction_index_valid
from barnabas.uuids import uuid_of, uuid_text

logger = logging.getLogger(__name__)

METADATA_FILE = "partition.metadata"
_DIGITS = 20


def create_log(
    services: LogServices,
    directory: str,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: TopicConfig,
    *,
    now_ms: int,
    start_offset: int = 0,
) -> PartitionLog:
    """Creates an empty log in a new directory.

    :raises OSError: a file cannot be created
    """
    files = services.files
    files.makedirs(directory)
    write_topic_id(files, directory, topic_id)
    log = PartitionLog(
        services,
        directory,
        topic,
        partition,
        topic_id,
        config,
        segments=[Segment.create(files, directory, start_offset, services.index_cache, now_ms)],
        leader_epochs=LeaderEpochs(files, f"{directory}/{leader_epochs.FILE_NAME}"),
        producers=ProducerState(files, directory),
        log_start_offset=start_offset,
        log_end_offset=start_offset,
        recovery_point=start_offset,
    )
    sync_names_later(log)
    return log


def sync_names_later(log: PartitionLog) -> None:
    """Adds what a new log consists of, beside its segments, to its next flush."""
    directory = log.directory
    log.sync_later(f"{directory}/{METADATA_FILE}", directory, os.path.dirname(directory))


def open_log(
    services: LogServices,
    directory: str,
    topic: str,
    partition: int,
    config: TopicConfig,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int = 0,
    was_compacted: bool = False,
    now_ms: int,
) -> PartitionLog:
    """Opens the log in ``directory``.

    :param clean: the last shutdown was clean; otherwise recovery checks everything after ``recovery_point``, and cuts
        the log at the first damaged batch
    :param was_compacted: the log may have gaps between records, as any log of a compacted topic
    :raises OSError: a file cannot be read or written
    """
    loader = _Loader(services, directory, config, recovery_point, now_ms)
    loader.may_have_gaps = was_compacted or config.compacts
    return loader.open(topic, partition, clean, log_start_offset)


class _Loader:
    """The state between the steps of :func:`open_log`."""

    def __init__(
        self, services: LogServices, directory: str, config: TopicConfig, recovery_point: int, now_ms: int
    ) -> None:
        self.services = services
        self.files = services.files
        self.directory = directory
        self.config = config
        self.recovery_point = recovery_point
        self.now_ms = now_ms
        self.segments: list[Segment] = []
        self.first_unindexed: int | None = None
        self.may_have_gaps = config.compacts
        self.snapshots: list[int] = []
        self.next_offset = 0
        self.rewritten: list[str] = []  # the transaction indexes
        self.last_epoch, self.last_offset = leader_epochs.UNDEFINED, -1  # of the last batch that recovery has checked

    def open(self, topic: str, partition: int, clean: bool, log_start_offset: int) -> PartitionLog:
        sizes = swapping.complete_swaps(self.files, self.directory)
        recover_from = None if clean else self.recovery_point
        self.list_segments(upgrading.upgrade(self.files, self.directory, sizes, recover_from))
        epochs_known = self.load_epochs()
        if not self.segments:
            self.start_empty(log_start_offset)
            clean = True
        self.producers = ProducerState(self.files, self.directory, self.snapshots)
        log_start_offset = max(log_start_offset, self.segments[0].base_offset)
        is_known = clean and epochs_known and self.first_unindexed is None
        if not (is_known and self.find_end() and self.find_producers(log_start_offset)):
            first = self.first_to_recover(clean) if epochs_known else 0
            self.recover(first, log_start_offset)
            if self.epochs.epoch_of(self.last_offset) > self.last_epoch != leader_epochs.UNDEFINED:
                self.recover_epochs(first, log_start_offset)
            clean = False
        if self.has_lost_epochs(log_start_offset):
            self.epochs.entries = []
            self.recover(0, log_start_offset)
            clean = False
        if self.next_offset < log_start_offset:
            logger.warning(
                "%s ends at offset %d, below its log start offset %d: deleting all segments",
                self.directory,
                self.next_offset,
                log_start_offset,
            )
            self.start_empty(log_start_offset)
        if clean:
            self.epochs.remove_without_records(self.next_offset)
        self.epochs.truncate_from_end(self.next_offset)
        self.epochs.truncate_from_start(log_start_offset)
        log = PartitionLog(
            self.services,
            self.directory,
            topic,
            partition,
            read_topic_id(self.files, self.directory),
            self.config,
            segments=self.segments,
            leader_epochs=self.epochs,
            producers=self.producers,
            log_start_offset=log_start_offset,
            log_end_offset=self.next_offset,
            recovery_point=self.next_offset if clean else min(self.recovery_point, self.next_offset),
        )
        self.producers.remove_strays([segment.base_offset for segment in self.segments])
        if not clean:
            self.sync_later(log)
        return log

    def sync_later(self, log: PartitionLog) -> None:
        """Adds to the log's next flush what it would leave out: it begins at the recovery point.

        Recovery may have cut the active segment there, or the process before truncated it, or the segment before it. A
        power cut could bring back what was there, and with it take the records that were flushed after it.
        """
        if self.recovery_point <= self.segments[0].base_offset:
            sync_names_later(log)  # no flush has been recorded: the log may be new
        number = self.first_from(log.recovery_point)
        for segment in (self.segments[max(number - 1, 0)], self.segments[-1]):
            log.sync_later(segment.path(LOG_SUFFIX), segment.transactions.path)
        log.sync_later(*self.rewritten)
        log.sync_epochs_later()

    def list_segments(self, sizes: dict[str, int]) -> None:
        bases = sorted(
            int(name[:_DIGITS])
            for name in sizes
            if name.endswith(LOG_SUFFIX) and name[:-4].isdigit() and len(name) == 24
        )
        known = set(bases)
        for name in sizes:
            stem, dot, suffix = name.partition(".")
            if dot + suffix in SUFFIXES[1:] and stem.isdigit() and int(stem) not in known:
                logger.warning("Index %s/%s is deleted: it belongs to no segment", self.directory, name)
                self.files.delete(f"{self.directory}/{name}")
            elif dot + suffix == SNAPSHOT_SUFFIX and stem.isdigit():
                self.snapshots.append(int(stem))
        for base in bases:
            size = sizes[f"{base:020d}{LOG_SUFFIX}"]
            segment = Segment(self.files, self.directory, base, size, self.services.index_cache)
            segment.index_interval = self.config.index_interval_bytes
            segment.created_ms = self.now_ms
            self.segments.append(segment)
            if self.first_unindexed is None and not _is_indexed(self.segments, sizes):
                self.first_unindexed = len(self.segments) - 1

    def load_epochs(self) -> bool:
        """Reads ``leader-epoch-checkpoint``. Returns False when the epochs must be read from the batches."""
        path = f"{self.directory}/{leader_epochs.FILE_NAME}"
        try:
            self.epochs = LeaderEpochs.load(self.files, path)
        except (CorruptCheckpoint, FileNotFoundError) as error:
            self.epochs = LeaderEpochs(self.files, path)
            if any(segment.size for segment in self.segments):
                logger.warning("Leader epochs are read from the batches: %s", error)
                return False
        return True

    def start_empty(self, offset: int) -> None:
        """Deletes all segments, and starts an empty log at ``offset``."""
        for segment in self.segments:
            _delete_segment(self.files, segment)
        self.segments = [Segment.create(self.files, self.directory, offset, self.services.index_cache, self.now_ms)]
        self.segments[0].index_interval = self.config.index_interval_bytes
        self.producers = ProducerState(self.files, self.directory, self.snapshots)
        self.producers.remove_snapshots(0, MAX_OFFSET)
        self.next_offset = offset

    def find_end(self) -> bool:
        """Finds the log's end in the active segment. Returns False when the segment needs recovery."""
        active = self.segments[-1]
        try:
            self.next_offset = active.find_end()
        except (CorruptIndex, CorruptMessage) as error:
            logger.warning("%s is recovered after a clean shutdown: %s", active.path(LOG_SUFFIX), error)
            return False
        return True

    def find_producers(self, log_start_offset: int) -> bool:
        """Loads the producers from a snapshot and the batches after it. Returns False when a batch is corrupt."""
        try:
            load_producers(self.producers, self.segments, log_start_offset, self.next_offset)
        except KafkaError as error:
            logger.warning("%s is recovered after a clean shutdown: %s", self.directory, error)
            self.recovery_point = 0
            return False
        return True

    def first_to_recover(self, clean: bool) -> int:
        """Returns the number of the segment that holds the recovery point. The active one is always checked."""
        if clean and self.recovery_point:
            first = len(self.segments) - 1
        else:
            first = self.first_from(self.recovery_point)
            if first and self.overlaps_next(first - 1):
                first -= 1
        return first if self.first_unindexed is None else min(first, self.first_unindexed)

    def first_from(self, offset: int) -> int:
        """Returns the number of the segment that holds ``offset``."""
        return max(sum(segment.base_offset <= offset for segment in self.segments) - 1, 0)

    def overlaps_next(self, number: int) -> bool:
        """Returns whether a segment has offsets of the next one: a power cut has undone its truncation."""
        segment = self.segments[number]
        try:
            return segment.end_offset() > self.segments[number + 1].base_offset
        except CorruptMessage:
            return True
        finally:
            segment.close()

    def has_lost_epochs(self, log_start_offset: int) -> bool:
        """Returns whether there are records, and all epochs start at the log's end or later.

        A log start offset at the log's end took the first epoch with it, into ``leader-epoch-checkpoint``, and was lost
        in a crash before its own checkpoint. Without an epoch a follower truncates its log to the high watermark, as
        Apache Kafka's does.
        """
        entries = self.epochs.entries
        return bool(entries) and entries[0][1] >= self.next_offset > log_start_offset

    def recover(self, first: int, log_start_offset: int) -> None:
        """Checks the segments from number ``first`` on, and cuts the log at the first damage."""
        base = self.segments[first].base_offset
        self.producers.remove_snapshots(base + 1, MAX_OFFSET)
        epochs_before = list(self.epochs.entries)
        try:
            load_producers(self.producers, self.segments[:first], log_start_offset, base)
        except KafkaError as error:
            logger.warning("%s is recovered from its first segment on: %s", self.directory, error)
            self.recover(0, log_start_offset)
            return
        expected = base
        for number in range(first, len(self.segments)):
            segment = self.segments[number]
            if number > first:
                self.producers.take_snapshot(segment.base_offset)
            expected = max(expected, segment.base_offset)
            damage, expected = self.recover_segment(number, expected)
            if damage is None:
                damage = self.wrong_end(number, expected)
            if damage is not None:
                self.cut(number, damage)
                break
            if number + 1 < len(self.segments):
                segment.close()  # a large log has more segments than the process has descriptors
        self.next_offset = max(expected, self.segments[-1].base_offset)
        active = self.segments[-1]
        active.active = True
        if self.epochs.entries != epochs_before:
            self.epochs.write()

    def recover_epochs(self, first: int, log_start_offset: int) -> None:
        """Recovers the log with the epochs of its batches.

        A power cut has undone a truncation: the log ends with batches of a former leader. The newer file
        ``leader-epoch-checkpoint`` has the epoch of those that were written in their place. With it, a follower would
        not learn that its log differs from the leader's.
        """
        base = self.segments[first].base_offset
        logger.warning("%s ends with epoch %d: a truncation was undone", self.directory, self.last_epoch)
        self.epochs.entries = [each for each in self.epochs.entries if each[0] <= self.last_epoch and each[1] < base]
        self.recover(first, log_start_offset)
        self.epochs.write()

    def cut(self, number: int, damage: Damage) -> None:
        """Cuts segment ``number`` at the damage, and deletes the segments after it."""
        segment = self.segments[number]
        logger.warning(
            "%s is cut at offset %d, position %d of %d: %s",
            segment.path(LOG_SUFFIX),
            damage.offset,
            damage.position,
            segment.size,
            damage.reason,
        )
        segment.file.truncate(damage.position)
        segment.size = damage.position
        for beyond in self.segments[number + 1 :]:
            logger.warning("%s is deleted: it follows a damaged segment", beyond.path(LOG_SUFFIX))
            _delete_segment(self.files, beyond)
        del self.segments[number + 1 :]
        self.producers.remove_snapshots(damage.offset + 1, MAX_OFFSET)

    def recover_segment(self, number: int, expected: int) -> tuple[Damage | None, int]:
        """Checks each batch of a segment, rebuilds the indexes, and adds epochs and producers.

        Returns the damage, or None, and the offset after the last good record.
        """
        segment = self.segments[number]
        next_base = self.segments[number + 1].base_offset if number + 1 < len(self.segments) else None
        expectations = Expectations(next_base, self.may_have_gaps)
        check = SegmentCheck(segment, expected, expectations, self.epochs, self.producers)
        damage = check.run()
        segment.replace_indexes(check.index, check.time_index, check.latest, check.latest_offset)
        segment.transactions.replace(check.aborted)
        if check.aborted:
            self.rewritten.append(segment.transactions.path)
        if check.epoch != leader_epochs.UNDEFINED:
            self.last_epoch, self.last_offset = check.epoch, check.expected - 1
        return damage, check.expected

    def wrong_end(self, number: int, end: int) -> Damage | None:
        """Returns the damage when a segment does not end where the next one starts.

        While the next one's name is in the directory, a power cut can shorten a segment that was not fsynced, or undo
        its truncation.
        """
        if number + 1 == len(self.segments):
            return None
        next_base = self.segments[number + 1].base_offset
        if next_base == end or (self.may_have_gaps and end < next_base):
            return None
        return Damage(self.segments[number].size, end, f"the next segment starts at offset {next_base}")


def _is_indexed(segments: list[Segment], sizes: dict[str, int]) -> bool:
    """Returns whether the last segment's transaction index is valid.

    It is checked at once because nothing later would reveal a missing one. Where the offset index is missing, the
    transaction index may be missing too (Apache Kafka's ``LogSegment.sanityCheck``).
    """
    segment = segments[-1]
    name = f"{segment.base_offset:020d}"
    try:
        if sizes.get(name + TXN_INDEX_SUFFIX):
            is_valid = is_transaction_index_valid(segments)
            for each in segments:
                each.close()
            if not is_valid:
                raise CorruptMessage(f"{name}{TXN_INDEX_SUFFIX} has transactions that are not in the log")
    except CorruptMessage as error:
        logger.warning("%s is recovered: %s", segment.path(LOG_SUFFIX), error)
        return False
    if segment.size and name + INDEX_SUFFIX not in sizes:
        logger.warning("%s is recovered: it has no offset index", segment.path(LOG_SUFFIX))
        return False
    return True


def _delete_segment(files: Files, segment: Segment) -> None:
    segment.close()
    for suffix in (*SUFFIXES, SNAPSHOT_SUFFIX):
        files.delete(segment.path(suffix))


def write_topic_id(files: Files, directory: str, topic_id: bytes) -> None:
    """Writes ``partition.metadata``, which holds the id of the topic that the directory belongs to."""
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    files.write_atomically(f"{directory}/{METADATA_FILE}", text.encode(), sync=False)


def read_topic_id(files: Files, directory: str) -> bytes:
    """Returns the topic id in ``partition.metadata``; zeros when the file is missing or invalid."""
    try:
        lines = files.read(f"{directory}/{METADATA_FILE}").decode().splitlines()
        entries = dict(line.split(": ", 1) for line in lines)
        topic_id = uuid_of(entries["topic_id"])
    except (FileNotFoundError, ValueError, KeyError):
        return bytes(16)
    return topic_id
