"""Opening a partition's directory: what a stop, a crash or Apache Kafka left there becomes a log again.

Knows nothing of other partitions. It goes the way of Apache Kafka's ``LogLoader``: leftovers of deletions and swaps
first, then the segments past the recovery point batch by batch, then leader epochs and producers.
"""

import logging
import os

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptMessage, KafkaError
from barnabas.log import leader_epochs, swapping, upgrading
from barnabas.log.checking import Damage, Following, SegmentCheck
from barnabas.log.checkpoints import CorruptCheckpoint
from barnabas.log.files import Files
from barnabas.log.index_check import transactions_hold
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.meta_properties import uuid_of, uuid_text
from barnabas.log.offset_index import CorruptIndex
from barnabas.log.partition_log import PartitionLog
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
from barnabas.log.services import LogServices

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
    """A new log in a new directory. Raises OSError."""
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
    log.sync_later(f"{directory}/{METADATA_FILE}", directory, os.path.dirname(directory))
    return log


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
    """The log in ``directory``, which is there.

    ``clean`` says that it was closed; otherwise what is past ``recovery_point`` is read and checked, and the log is cut
    at the first batch that is damaged. ``was_compacted`` says that records may be missing in between, as they may where
    the topic is compacted now. Raises OSError.
    """
    opening = _Opening(services, directory, config, recovery_point, now_ms)
    opening.may_have_holes = was_compacted or config.compacts
    return opening.open(topic, partition, clean, log_start_offset)


class _Opening:
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
        self.may_have_holes = config.compacts
        self.snapshots: list[int] = []
        self.next_offset = 0

    def open(self, topic: str, partition: int, clean: bool, log_start_offset: int) -> PartitionLog:
        sizes = swapping.finish(self.files, self.directory)
        recover_from = None if clean else self.recovery_point
        self.list_segments(upgrading.upgrade(self.files, self.directory, sizes, recover_from))
        epochs_known = self.load_epochs()
        if not self.segments:
            self.start_anew(log_start_offset)
            clean = True
        self.producers = ProducerState(self.files, self.directory, self.snapshots)
        log_start_offset = max(log_start_offset, self.segments[0].base_offset)
        is_known = clean and epochs_known and self.first_unindexed is None
        if not (is_known and self.find_end() and self.find_producers(log_start_offset)):
            self.recover(self.first_to_recover(clean) if epochs_known else 0, log_start_offset)
            clean = False
        if self.next_offset < log_start_offset:
            logger.warning("%s ends at %d, before its start %d", self.directory, self.next_offset, log_start_offset)
            self.start_anew(log_start_offset)
        if clean:
            self.epochs.forget_empty(self.next_offset)
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
        return log

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
                logger.warning("Index %s/%s belongs to no segment and is deleted", self.directory, name)
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
        """Read ``leader-epoch-checkpoint``; false when it says nothing and the batches have to."""
        path = f"{self.directory}/{leader_epochs.FILE_NAME}"
        try:
            self.epochs = LeaderEpochs.load(self.files, path)
        except (CorruptCheckpoint, FileNotFoundError) as error:
            self.epochs = LeaderEpochs(self.files, path)
            if any(segment.size for segment in self.segments):
                logger.warning("Leader epochs are read from the batches, because of %s", error)
                return False
        return True

    def start_anew(self, offset: int) -> None:
        """Nothing is left: go on with an empty log at ``offset``."""
        for segment in self.segments:
            _delete_segment(self.files, segment)
        self.segments = [Segment.create(self.files, self.directory, offset, self.services.index_cache, self.now_ms)]
        self.segments[0].index_interval = self.config.index_interval_bytes
        self.producers = ProducerState(self.files, self.directory, self.snapshots)
        self.producers.remove_snapshots(0, MAX_OFFSET)
        self.next_offset = offset

    def find_end(self) -> bool:
        """Find the log's end in the active segment; false when that does not go without recovery."""
        active = self.segments[-1]
        try:
            self.next_offset = active.find_end()
        except (CorruptIndex, CorruptMessage) as error:
            logger.warning("%s is recovered although it was closed: %s", active.path(LOG_SUFFIX), error)
            return False
        return True

    def find_producers(self, log_start_offset: int) -> bool:
        """Learn the producers from a snapshot and what follows it; false when that cannot be read."""
        try:
            load_producers(self.producers, self.segments, log_start_offset, self.next_offset)
        except KafkaError as error:
            logger.warning("%s is recovered although it was closed: %s", self.directory, error)
            self.recovery_point = 0
            return False
        return True

    def first_to_recover(self, clean: bool) -> int:
        """The segment that holds the recovery point; the active one is never trusted."""
        if clean and self.recovery_point:
            first = len(self.segments) - 1
        else:
            before = sum(segment.base_offset <= self.recovery_point for segment in self.segments)
            first = max(before - 1, 0)
        return first if self.first_unindexed is None else min(first, self.first_unindexed)

    def recover(self, first: int, log_start_offset: int) -> None:
        """Check the segments from number ``first`` on; cut the log at the first damage."""
        base = self.segments[first].base_offset
        self.producers.remove_snapshots(base + 1, MAX_OFFSET)
        epochs_before = list(self.epochs.entries)
        try:
            load_producers(self.producers, self.segments[:first], log_start_offset, base)
        except KafkaError as error:
            logger.warning("%s is recovered from its start on: %s", self.directory, error)
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
                damage = self.missing_tail(number, expected)
            if damage is not None:
                self.cut(number, damage)
                break
            if number + 1 < len(self.segments):
                segment.close()  # a big log has more segments than there are descriptors
        self.next_offset = max(expected, self.segments[-1].base_offset)
        active = self.segments[-1]
        active.active = True
        if self.epochs.entries != epochs_before:
            self.epochs.write()

    def cut(self, number: int, damage: Damage) -> None:
        """Cut segment ``number`` where it is damaged, and drop those after it."""
        segment = self.segments[number]
        logger.warning(
            "%s is cut at offset %d, position %d of %d, because %s",
            segment.path(LOG_SUFFIX),
            damage.offset,
            damage.position,
            segment.size,
            damage.reason,
        )
        segment.file.truncate(damage.position)
        segment.size = damage.position
        for beyond in self.segments[number + 1 :]:
            logger.warning("%s is deleted, as it follows a damaged segment", beyond.path(LOG_SUFFIX))
            _delete_segment(self.files, beyond)
        del self.segments[number + 1 :]
        self.producers.remove_snapshots(damage.offset + 1, MAX_OFFSET)

    def recover_segment(self, number: int, expected: int) -> tuple[Damage | None, int]:
        """Check each batch of a segment, index it, and learn epochs and producers from it.

        Gives the damage, if there is any, and the offset after the last good record.
        """
        segment = self.segments[number]
        next_base = self.segments[number + 1].base_offset if number + 1 < len(self.segments) else None
        following = Following(next_base, self.may_have_holes)
        check = SegmentCheck(segment, expected, following, self.epochs, self.producers)
        damage = check.run()
        segment.replace_indexes(check.index, check.time_index, check.latest, check.latest_offset)
        segment.transactions.replace(check.aborted)
        return damage, check.expected

    def missing_tail(self, number: int, end: int) -> Damage | None:
        """A power cut can leave a segment shorter than it was, and the next one's name in the directory."""
        if number + 1 == len(self.segments) or self.may_have_holes or self.segments[number + 1].base_offset == end:
            return None
        segment = self.segments[number]
        return Damage(segment.size, end, f"the next segment begins at offset {self.segments[number + 1].base_offset}")


def _is_indexed(segments: list[Segment], sizes: dict[str, int]) -> bool:
    """Whether the last one's index of aborted transactions can be believed: nobody notices later that it is not there.

    Where the offset index is missing it may be too, as Apache Kafka's ``LogSegment.sanityCheck`` has it.
    """
    segment = segments[-1]
    name = f"{segment.base_offset:020d}"
    try:
        if sizes.get(name + TXN_INDEX_SUFFIX):
            holds = transactions_hold(segments)
            for each in segments:
                each.close()
            if not holds:
                raise CorruptMessage(f"{name}{TXN_INDEX_SUFFIX} speaks of transactions that are not there")
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


MAX_OFFSET = 2**63 - 1


def write_topic_id(files: Files, directory: str, topic_id: bytes) -> None:
    """Write ``partition.metadata``, which ties the directory to the topic that it belongs to."""
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    files.write_atomically(f"{directory}/{METADATA_FILE}", text.encode(), sync=False)


def read_topic_id(files: Files, directory: str) -> bytes:
    """The topic id in ``partition.metadata``; zero when there is no such file, or nothing sensible in it."""
    try:
        lines = files.read(f"{directory}/{METADATA_FILE}").decode().splitlines()
        entries = dict(line.split(": ", 1) for line in lines)
        topic_id = uuid_of(entries["topic_id"])
    except (FileNotFoundError, ValueError, KeyError):
        return bytes(16)
    return topic_id
