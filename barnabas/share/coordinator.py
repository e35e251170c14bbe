"""The share coordinator: what is kept of share partitions, as a state machine (KIP-932, ``ShareCoordinatorShard``).

Knows nothing of requests, logs and files: records to write go out, and come back when they are in the log. What is in
memory is what the records say, before a restart and after it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from barnabas.clock import Clock, Scheduler
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    KafkaError,
    MalformedMessage,
    NotCoordinator,
    UnknownTopicOrPartition,
)
from barnabas.share import records
from barnabas.share.combining import Tangled, combine
from barnabas.share.config import ShareCoordinatorConfig
from barnabas.share.kept import Kept
from barnabas.share.messages import (
    NO_EPOCH,
    UNINITIALIZED,
    UNKNOWN_COUNT,
    UNKNOWN_START_OFFSET,
    Outcome,
    Reply,
    SharePartitionKey,
    StateBatch,
)
from barnabas.wire.messages.share_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

logger = logging.getLogger(__name__)

VERSION = 0
"""Of the values; there is no other."""
NEW_LEADER_EPOCH = 0
"""What a state has that no leader has read yet."""
LONGEST_ID = (1 << 15) - 1
"""Bytes of UTF-8 of a group's id; requests may bring longer ones, for which a record's key has no place."""

Written = Callable[[type[KafkaError] | None], object]
Append = Callable[[str, bytes, bytes | None, Callable[[int, int], object], Written], object]
"""Append a record about what that coordinator key names.

The first callback is called at once when it is in the log, with the log partition's number and the record's offset; the
second when it is safe, or with why it cannot be.
"""


class ShareCoordinator:
    """What is kept of each share partition. Each command is answered once, by an Outcome."""

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        clock: Clock,
        scheduler: Scheduler,
        *,
        append: Append,
        is_coordinator: Callable[[str], bool],
        has_partition: Callable[[bytes, int], bool],
        prune: Callable[[int, int], object],
    ) -> None:
        """``prune`` rids a partition of the log of what is below an offset."""
        self._most_updates = config.share_coordinator_snapshot_update_records_per_snapshot
        self._prune_after = config.share_coordinator_state_topic_prune_interval_ms
        self._cold_after = config.share_coordinator_cold_partition_snapshot_interval_ms
        self._clock = clock
        self._append = append
        self._is_coordinator = is_coordinator
        self._has_partition = has_partition
        self._prune = prune
        self._kept: dict[SharePartitionKey, Kept] = {}
        self._newest: dict[int, int] = {}
        """By partition of the log, the offset of the newest snapshot or tombstone there."""
        self._pruned: dict[int, int] = {}
        self._deadlines = Deadlines(clock, scheduler)
        self._pruning = Deadline(self._prune_all)
        self._cold = Deadline(self._snapshot_cold)

    # ------------------------------------------------------------ commands

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, reply: Reply) -> None:
        """Begin a state of that epoch, whatever there was before; a start offset of -1 is yet to be found out."""
        kept = self._kept.get(key)
        refusal = self._refuse(key) or _fence_state(kept, state_epoch) or self._refuse_unknown(key)
        if refusal is not None:
            reply(refusal)
            return
        now_ms = self._clock.time_ms()
        pair = records.snapshot(
            key,
            snapshot_epoch=0 if kept is None else kept.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=NEW_LEADER_EPOCH,
            start_offset=start_offset,
            delivery_complete_count=UNKNOWN_COUNT if start_offset == UNKNOWN_START_OFFSET else 0,
            batches=(),
            created_ms=now_ms,
            written_ms=now_ms,
        )
        self._commit(key, pair, Outcome(None), reply)

    def read(self, key: SharePartitionKey, leader_epoch: int, reply: Reply) -> None:
        """All that is kept, for the leader of that epoch, which fences the ones before it; -1 is nobody's epoch."""
        kept = self._kept.get(key)
        refusal = self._refuse(key)
        if kept is None:
            reply(refusal or _refusal(InvalidRequest, "Read operation on uninitialized share partition not allowed."))
            return
        refusal = refusal or _fence_leader(kept, leader_epoch) or self._refuse_unknown(key)
        if refusal is not None:
            reply(refusal)
        elif leader_epoch in (NO_EPOCH, kept.max_leader_epoch):
            reply(Outcome(None, state=kept.state))
        else:
            state = kept.state
            pair = self._change(key, kept, leader_epoch, state.start_offset, state.delivery_complete_count, ())
            self._commit(key, pair, Outcome(None, state=state._replace(leader_epoch=leader_epoch)), reply)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        reply: Reply,
    ) -> None:
        """Keep what became of records; a start offset of -1 leaves it where it is.

        The epochs only fence: what is kept has the state epoch of its beginning, and the leader epoch of who read last.
        """
        kept = self._kept.get(key)
        refusal = self._refuse(key)
        if kept is None:
            reply(refusal or _refusal(InvalidRequest, "Write operation on uninitialized share partition not allowed."))
            return
        refusal = (
            refusal
            or _fence_leader(kept, leader_epoch)
            or _fence_state(kept, state_epoch)
            or self._refuse_unknown(key)
            or _refuse_batches(batches)
        )
        if refusal is not None:
            reply(refusal)
            return
        try:
            pair = self._change(key, kept, kept.state.leader_epoch, start_offset, delivery_complete_count, batches)
        except Tangled:
            reply(_refusal(InvalidRequest, "Too many batches of offsets overlap each other"))
            return
        self._commit(key, pair, Outcome(None), reply)

    def read_summary(self, key: SharePartitionKey) -> Outcome:
        """What is kept but for the batches; of what was never set up, UNINITIALIZED."""
        refusal = self._refuse(key) or self._refuse_unknown(key)
        if refusal is not None:
            return refusal
        kept = self._kept.get(key)
        return Outcome(None, state=UNINITIALIZED if kept is None else kept.state._replace(batches=()))

    def delete(self, key: SharePartitionKey, reply: Reply) -> None:
        """Forget what is kept; that nothing is kept is well, too."""
        refusal = self._refuse(key) or self._refuse_unknown(key)
        if refusal is not None or key not in self._kept:
            reply(refusal or Outcome(None))
        else:
            self._commit(key, records.tombstone(key), Outcome(None), reply)

    # ------------------------------------------------------------ start, follow, stop

    def load(self, index: int, found: Iterable[tuple[int, bytes, bytes | None]]) -> None:
        """Take in the records of a partition of the log: offset, key and value of each.

        What a newer broker wrote is passed over. :raises MalformedMessage: a record is none
        """
        unknown = 0
        for offset, key_bytes, value_bytes in found:
            key = decode_key(key_bytes)
            if key is None or (value_bytes is not None and value_bytes[:2] != VERSION.to_bytes(2)):
                unknown += 1
                continue
            value = None if value_bytes is None else decode_value(key, value_bytes)
            try:
                self._apply((key, value), index, offset)
            except Tangled as error:
                raise MalformedMessage(f"no coordinator wrote the batches of offset {offset}") from error
        if unknown:
            logger.warning("%d records of share partitions are of a newer broker's kind, and passed over", unknown)

    def start(self) -> None:
        """All is loaded: from here on the log is kept short. What it knows of topics that are gone, goes."""
        for key in [key for key in self._kept if not self._has_partition(key.topic_id, key.partition)]:
            self._forget(key)
        self._deadlines.set(self._pruning, self._prune_after / 1000)
        self._deadlines.set(self._cold, self._cold_after / 1000)

    def stop(self) -> None:
        """No deadline strikes any more."""
        self._deadlines.close()

    def resign(self) -> None:
        """The log is gone, and all that it kept."""
        self._kept.clear()
        self._newest.clear()
        self._pruned.clear()

    def resign_lost(self) -> None:
        """Forget what is kept in partitions of the log that are no longer led here."""
        lost = {
            kept.index for key, kept in self._kept.items() if not self._is_coordinator(records.coordinator_key(key))
        }
        self._kept = {key: kept for key, kept in self._kept.items() if kept.index not in lost}
        for index in lost:
            self._newest.pop(index, None)
            self._pruned.pop(index, None)

    def topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """What is kept about these goes with them."""
        for key in [key for key in self._kept if key.topic_id in topic_ids]:
            self._forget(key)

    def _forget(self, key: SharePartitionKey) -> None:
        """Where the log cannot take it, it is tried again at the next start."""
        self._commit(key, records.tombstone(key), Outcome(None), _nobody)

    # ------------------------------------------------------------ refusing

    def _refuse(self, key: SharePartitionKey) -> Outcome | None:
        if not self._is_coordinator(records.coordinator_key(key)):
            return _refusal(NotCoordinator)
        if key.partition < 0:
            return _refusal(InvalidRequest, "The partition id cannot be a negative number.")
        if len(key.group_id) * 4 > LONGEST_ID and len(key.group_id.encode()) > LONGEST_ID:
            return _refusal(InvalidRequest, "The group's id is too long for a record")
        return None

    def _refuse_unknown(self, key: SharePartitionKey) -> Outcome | None:
        if self._has_partition(key.topic_id, key.partition):
            return None
        return _refusal(UnknownTopicOrPartition)

    # ------------------------------------------------------------ changing

    def _change(
        self,
        key: SharePartitionKey,
        kept: Kept,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> records.Pair:
        """An update; or a snapshot, where there have been as many updates as there may be."""
        if kept.updates < self._most_updates:
            return records.update(
                key,
                snapshot_epoch=kept.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=combine(batches, start_offset),
            )
        state = kept.state
        start_offset = state.start_offset if start_offset == UNKNOWN_START_OFFSET else start_offset
        now_ms = self._clock.time_ms()
        return records.snapshot(
            key,
            snapshot_epoch=kept.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            batches=combine([*state.batches, *batches], start_offset),
            created_ms=now_ms,
            written_ms=now_ms,
        )

    def _commit(self, key: SharePartitionKey, pair: records.Pair, outcome: Outcome, reply: Reply) -> None:
        """Append the record, apply it, and answer when it is safe. What cannot be appended is not applied."""
        record_key, value = pair
        self._append(
            records.coordinator_key(key),
            encode_key(record_key),
            None if value is None else encode_value(value, VERSION),
            lambda index, offset: self._apply(pair, index, offset),
            lambda error: reply(outcome if error is None else _refusal(error)),
        )

    def _apply(self, pair: tuple[object, object], index: int, offset: int) -> None:
        """Take in a record that is in the log: now, or when the log is read at start."""
        record_key, value = pair
        assert isinstance(record_key, ShareSnapshotKey | ShareUpdateKey)
        key = SharePartitionKey(record_key.group_id, record_key.topic_id, record_key.partition)
        kept = self._kept.get(key)
        if isinstance(value, ShareUpdateValue):
            if kept is None:
                kept = self._kept[key] = Kept(index)
            kept.update(value)
        elif isinstance(record_key, ShareSnapshotKey):
            self._newest[index] = offset
            if not isinstance(value, ShareSnapshotValue):
                self._kept.pop(key, None)
                return
            if kept is None:
                kept = self._kept[key] = Kept(index)
            kept.snapshot(value, offset, self._most_updates)

    # ------------------------------------------------------------ keeping the log short

    def _prune_all(self) -> None:
        """Drop what newer snapshots have made worthless (``ShareCoordinatorOffsetsManager``)."""
        self._deadlines.set(self._pruning, self._prune_after / 1000)
        needed = dict(self._newest)
        for kept in self._kept.values():
            needed[kept.index] = min(needed.get(kept.index, kept.offset), kept.offset)
        for index, offset in needed.items():
            if offset > self._pruned.get(index, 0):
                self._pruned[index] = offset
                self._prune(index, offset)

    def _snapshot_cold(self) -> None:
        """Write again what nobody has changed for long, so that what lies before can go (``snapshotColdPartitions``).

        Where all of a partition of the log has been written so already, it is quiet, and left alone.
        """
        self._deadlines.set(self._cold, self._cold_after / 1000)
        now_ms = self._clock.time_ms()
        active = {kept.index for kept in self._kept.values() if kept.created_ms == kept.written_ms}
        for key, kept in list(self._kept.items()):
            if kept.index in active and now_ms - kept.written_ms >= self._cold_after:
                state = kept.state
                pair = records.snapshot(
                    key,
                    snapshot_epoch=kept.snapshot_epoch + 1,
                    state_epoch=state.state_epoch,
                    leader_epoch=state.leader_epoch,
                    start_offset=state.start_offset,
                    delivery_complete_count=state.delivery_complete_count,
                    batches=state.batches,
                    created_ms=kept.created_ms,
                    written_ms=now_ms,
                )
                self._commit(key, pair, Outcome(None), _nobody)


def _nobody(outcome: Outcome) -> None:
    """Nobody has asked."""


def _refusal(error: type[KafkaError], message: str | None = None) -> Outcome:
    return Outcome(error, message or str(error()))


def _fence_leader(kept: Kept, leader_epoch: int) -> Outcome | None:
    fenced = leader_epoch != NO_EPOCH and leader_epoch < kept.max_leader_epoch
    return _refusal(FencedLeaderEpoch) if fenced else None


def _fence_state(kept: Kept | None, state_epoch: int) -> Outcome | None:
    fenced = kept is not None and state_epoch != NO_EPOCH and state_epoch < kept.max_state_epoch
    return _refusal(FencedStateEpoch) if fenced else None


def _refuse_batches(batches: Sequence[StateBatch]) -> Outcome | None:
    """Apache Kafka 4.3.1 takes batches that end before they begin, and combines some of them for ever."""
    if any(last < first for first, last, _, _ in batches):
        return _refusal(InvalidRequest, "A batch of offsets must not end before it begins")
    return None
