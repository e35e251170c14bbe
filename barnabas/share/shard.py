"""One shard of the share coordinator: the share states that one partition of ``__share_group_state`` keeps (KIP-932).

Knows nothing of requests, logs and files: records go out through one function, and are applied when they are in the
log. So what is in memory is what the log says, before a restart and after it. Apache Kafka's ``ShareCoordinatorShard``.
"""

import logging
from collections.abc import Callable, Collection, Sequence

from barnabas.clock import Clock
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    KafkaError,
    MalformedMessage,
    UnknownTopicOrPartition,
)
from barnabas.share import records
from barnabas.share.combining import TooManySteps, combine
from barnabas.share.config import ShareCoordinatorConfig
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
from barnabas.share.stored_state import StoredState
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
"""The only version of the values."""

KNOWN_VERSION = VERSION.to_bytes(2)

NEW_LEADER_EPOCH = 0
"""The leader epoch of a state that no leader has read yet."""

LONGEST_ID = (1 << 15) - 1
"""Bytes of UTF-8 of a group id. Requests may have longer ones, for which the key of a record has no place."""

Written = Callable[[KafkaError | None], object]
Append = Callable[[bytes, bytes | None, Callable[[int], object], Written], object]
"""Appends a record with that key and value.

The first callback is called with its offset as soon as it is in the log; the second when it is safe, or with the error.
"""

WhenWritten = Callable[[Written], object]
"""Calls back when all records that were appended before are safe."""


class ShareShard:
    """The share states of one partition. Every command names one that this partition keeps, or would keep.

    Each command replies once, with an Outcome.
    """

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        clock: Clock,
        deadlines: Deadlines,
        *,
        append: Append,
        when_written: WhenWritten,
        has_partition: Callable[[bytes, int], bool],
        prune: Callable[[int], bool],
    ) -> None:
        """
        :param has_partition: returns whether the topic with that id has that partition
        :param prune: deletes the records of the log below an offset, and returns whether it could
        """
        self._most_updates = config.share_coordinator_snapshot_update_records_per_snapshot
        self._prune_after = config.share_coordinator_state_topic_prune_interval_ms
        self._cold_after = config.share_coordinator_cold_partition_snapshot_interval_ms
        self._clock = clock
        self._append = append
        self._when_written = when_written
        self._has_partition = has_partition
        self._prune = prune
        self._states: dict[SharePartitionKey, StoredState] = {}
        self._newest = 0
        """The offset of the newest snapshot or tombstone."""
        self._pruned = 0
        self._unknown_records = 0
        self._deadlines = deadlines
        self._pruning = Deadline(self._prune_regularly)
        self._cold = Deadline(self._snapshot_cold)

    # ------------------------------------------------------------ commands

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, reply: Reply) -> None:
        """InitializeShareGroupState: starts a new state of that epoch. A start offset of -1 is not known yet."""
        stored = self._states.get(key)
        refusal = self._refuse(key) or _fence_state(stored, state_epoch) or self._refuse_unknown(key)
        if refusal is not None:
            reply(refusal)
            return
        now_ms = self._clock.time_ms()
        pair = records.snapshot(
            key,
            snapshot_epoch=0 if stored is None else stored.snapshot_epoch + 1,
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
        """ReadShareGroupState: replies with the state, and fences leaders of earlier epochs. -1 is not an epoch."""
        stored = self._states.get(key)
        refusal = self._refuse(key)
        if stored is None:
            reply(refusal or Outcome(InvalidRequest("Read operation on uninitialized share partition not allowed.")))
            return
        refusal = refusal or _fence_leader(stored, leader_epoch) or self._refuse_unknown(key)
        if refusal is not None:
            reply(refusal)
        elif leader_epoch in (NO_EPOCH, stored.max_leader_epoch):
            self._reply_when_written(Outcome(None, state=stored.state), reply)
        else:
            state = stored.state
            pair = self._change(key, stored, leader_epoch, state.start_offset, state.delivery_complete_count, ())
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
        """WriteShareGroupState: merges the batches into the state. A start offset of -1 leaves it where it is.

        The epochs only fence: the state keeps the epoch that it was initialized with, and that of the last read.
        """
        stored = self._states.get(key)
        refusal = self._refuse(key)
        if stored is None:
            reply(refusal or Outcome(InvalidRequest("Write operation on uninitialized share partition not allowed.")))
            return
        refusal = (
            refusal
            or _fence_leader(stored, leader_epoch)
            or _fence_state(stored, state_epoch)
            or self._refuse_unknown(key)
            or _refuse_batches(batches)
        )
        if refusal is not None:
            reply(refusal)
            return
        try:
            pair = self._change(key, stored, stored.state.leader_epoch, start_offset, delivery_complete_count, batches)
        except TooManySteps:
            reply(Outcome(InvalidRequest("Too many batches of offsets overlap each other")))
            return
        self._commit(key, pair, Outcome(None), reply)

    def read_summary(self, key: SharePartitionKey) -> Outcome:
        """ReadShareGroupStateSummary: returns the state without its batches, or UNINITIALIZED."""
        refusal = self._refuse(key) or self._refuse_unknown(key)
        if refusal is not None:
            return refusal
        stored = self._states.get(key)
        return Outcome(None, state=UNINITIALIZED if stored is None else stored.state._replace(batches=()))

    def delete(self, key: SharePartitionKey, reply: Reply) -> None:
        """DeleteShareGroupState: deletes the state, if there is one."""
        refusal = self._refuse(key) or self._refuse_unknown(key)
        if refusal is not None:
            reply(refusal)
        elif key not in self._states:
            self._reply_when_written(Outcome(None), reply)
        else:
            self._commit(key, records.tombstone(key), Outcome(None), reply)

    # ------------------------------------------------------------ the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Applies a record of ``__share_group_state``. One that a newer broker wrote is ignored.

        :raises MalformedMessage: it is not such a record
        """
        decoded = decode_key(key)
        if decoded is None or (value is not None and value[:2] != KNOWN_VERSION):
            self._unknown_records += 1
            return
        try:
            self._apply((decoded, None if value is None else decode_value(decoded, value)), offset)
        except TooManySteps as error:
            raise MalformedMessage(f"the batches at offset {offset} were not written by a share coordinator") from error

    def replay_end_marker(self, producer_id: int, is_commit: bool) -> None:
        """Ignored: no transaction writes to ``__share_group_state``."""

    def loaded(self) -> None:
        """Deletes the states of topics that do not exist any more, and begins to keep the log short."""
        if self._unknown_records:
            logger.warning("Ignoring %d records of a version that this broker does not know", self._unknown_records)
        for key in [key for key in self._states if not self._has_partition(key.topic_id, key.partition)]:
            self._forget(key)
        self._deadlines.set(self._pruning, self._prune_after / 1000)
        self._deadlines.set(self._cold, self._cold_after / 1000)

    def unloaded(self) -> None:
        """Drops all states."""
        self._states.clear()

    def topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """Deletes the states of these topics."""
        for key in [key for key in self._states if key.topic_id in topic_ids]:
            self._forget(key)

    def _forget(self, key: SharePartitionKey) -> None:
        """Deletes a state of a topic that does not exist. Where that fails, the next :meth:`loaded` tries again."""
        self._commit(key, records.tombstone(key), Outcome(None), _ignore)

    # ------------------------------------------------------------ refusing

    def _refuse(self, key: SharePartitionKey) -> Outcome | None:
        if key.partition < 0:
            return Outcome(InvalidRequest("The partition id cannot be a negative number."))
        if len(key.group_id) * 4 > LONGEST_ID and len(key.group_id.encode()) > LONGEST_ID:
            return Outcome(InvalidRequest("The group's id is too long for a record"))
        return None

    def _refuse_unknown(self, key: SharePartitionKey) -> Outcome | None:
        if self._has_partition(key.topic_id, key.partition):
            return None
        return Outcome(UnknownTopicOrPartition())

    # ------------------------------------------------------------ changing

    def _change(
        self,
        key: SharePartitionKey,
        stored: StoredState,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> records.Pair:
        """Returns the next record: an update, or a snapshot after as many updates as the config allows."""
        if stored.updates < self._most_updates:
            return records.update(
                key,
                snapshot_epoch=stored.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=combine(batches, start_offset),
            )
        state = stored.state
        start_offset = state.start_offset if start_offset == UNKNOWN_START_OFFSET else start_offset
        now_ms = self._clock.time_ms()
        return records.snapshot(
            key,
            snapshot_epoch=stored.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            batches=combine([*state.batches, *batches], start_offset),
            created_ms=now_ms,
            written_ms=now_ms,
        )

    def _commit(self, key: SharePartitionKey, pair: records.Pair, outcome: Outcome, reply: Reply) -> None:
        """Appends the record, applies it, and replies when it is safe. What cannot be appended is not applied."""
        record_key, value = pair
        self._append(
            encode_key(record_key),
            None if value is None else encode_value(value, VERSION),
            lambda offset: self._apply(pair, offset),
            lambda error: reply(outcome if error is None else Outcome(error)),
        )

    def _reply_when_written(self, outcome: Outcome, reply: Reply) -> None:
        """Replies when the state that the outcome rests on is safe (``waitForPendingWrites``)."""
        self._when_written(lambda error: reply(outcome if error is None else Outcome(error)))

    def _apply(self, pair: tuple[object, object], offset: int) -> None:
        """Applies a record that is in the log: just appended, or replayed."""
        record_key, value = pair
        assert isinstance(record_key, ShareSnapshotKey | ShareUpdateKey)
        key = SharePartitionKey(record_key.group_id, record_key.topic_id, record_key.partition)
        stored = self._states.get(key)
        if isinstance(value, ShareUpdateValue):
            if stored is None:
                stored = self._states[key] = StoredState()
            stored.update(value)
        elif isinstance(record_key, ShareSnapshotKey):
            self._newest = offset
            if not isinstance(value, ShareSnapshotValue):
                self._states.pop(key, None)
                return
            if stored is None:
                stored = self._states[key] = StoredState()
            stored.snapshot(value, offset, self._most_updates)

    # ------------------------------------------------------------ keeping the log short

    def _prune_regularly(self) -> None:
        """Deletes the records that newer snapshots have made redundant (``ShareCoordinatorOffsetsManager``)."""
        self._deadlines.set(self._pruning, self._prune_after / 1000)
        offset = min((stored.offset for stored in self._states.values()), default=self._newest)
        if offset > self._pruned and self._prune(offset):
            self._pruned = offset

    def _snapshot_cold(self) -> None:
        """Writes snapshots of states that were not changed for long, so that the log can be pruned.

        If all states are such snapshots already, nothing is written (``snapshotColdPartitions``).
        """
        self._deadlines.set(self._cold, self._cold_after / 1000)
        now_ms = self._clock.time_ms()
        if all(stored.created_ms != stored.written_ms for stored in self._states.values()):
            return
        for key, stored in list(self._states.items()):
            if now_ms - stored.written_ms >= self._cold_after:
                state = stored.state
                pair = records.snapshot(
                    key,
                    snapshot_epoch=stored.snapshot_epoch + 1,
                    state_epoch=state.state_epoch,
                    leader_epoch=state.leader_epoch,
                    start_offset=state.start_offset,
                    delivery_complete_count=state.delivery_complete_count,
                    batches=state.batches,
                    created_ms=stored.created_ms,
                    written_ms=now_ms,
                )
                self._commit(key, pair, Outcome(None), _ignore)


def _ignore(outcome: Outcome) -> None:
    """The reply to a command of the shard's own."""


def _fence_leader(stored: StoredState, leader_epoch: int) -> Outcome | None:
    fenced = leader_epoch != NO_EPOCH and leader_epoch < stored.max_leader_epoch
    return Outcome(FencedLeaderEpoch()) if fenced else None


def _fence_state(stored: StoredState | None, state_epoch: int) -> Outcome | None:
    fenced = stored is not None and state_epoch != NO_EPOCH and state_epoch < stored.max_state_epoch
    return Outcome(FencedStateEpoch()) if fenced else None


def _refuse_batches(batches: Sequence[StateBatch]) -> Outcome | None:
    """Apache Kafka 4.3.1 takes batches that end before they begin, and never finishes combining some of them."""
    if any(last < first for first, last, _, _ in batches):
        return Outcome(InvalidRequest("A batch of offsets must not end before it begins"))
    return None
