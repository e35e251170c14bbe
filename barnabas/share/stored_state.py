"""The state of one share partition in memory, as of its records.

Knows nothing of requests, nor of how records are written.
"""

from barnabas.share.combining import add, combine, is_settled
from barnabas.share.messages import NO_EPOCH, UNKNOWN_START_OFFSET, SharePartitionState, StateBatch
from barnabas.share.records import batches_of
from barnabas.wire.messages.share_records import ShareSnapshotValue, ShareUpdateValue


class StoredState:
    """The state of a share partition, which only its records change."""

    __slots__ = (
        "created_ms",
        "is_settled",
        "max_leader_epoch",
        "max_state_epoch",
        "offset",
        "snapshot_epoch",
        "state",
        "updates",
        "written_ms",
    )

    def __init__(self) -> None:
        self.offset = 0  #: of its newest snapshot
        self.state = SharePartitionState()
        self.is_settled = True  #: no two adjacent batches have the same state
        self.snapshot_epoch = 0
        self.updates = 0  #: since a snapshot that was due
        self.max_leader_epoch = NO_EPOCH
        """Lower leader epochs are fenced, also after a new snapshot; likewise lower state epochs."""
        self.max_state_epoch = NO_EPOCH
        self.created_ms = self.written_ms = 0

    def snapshot(self, value: ShareSnapshotValue, offset: int, most_updates: int) -> None:
        """Applies a snapshot. Only one that was due resets the number of updates."""
        self.offset = offset
        self.snapshot_epoch = value.snapshot_epoch
        self.state = SharePartitionState(
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            tuple(batches_of(value)),
        )
        self.is_settled = False
        self.created_ms, self.written_ms = value.create_timestamp, value.write_timestamp
        self.max_leader_epoch = max(self.max_leader_epoch, value.leader_epoch)
        self.max_state_epoch = max(self.max_state_epoch, value.state_epoch)
        if self.updates >= most_updates:
            self.updates = 0

    def update(self, value: ShareUpdateValue) -> None:
        """Applies an update."""
        state = self.state
        start = state.start_offset if value.start_offset == UNKNOWN_START_OFFSET else value.start_offset
        leader_epoch = state.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch
        batches = batches_of(value)
        self.state = SharePartitionState(
            state.state_epoch,
            leader_epoch,
            start,
            value.delivery_complete_count,
            self._with(batches, start),
        )
        self.max_leader_epoch = max(self.max_leader_epoch, value.leader_epoch)
        self.updates += 1

    def _with(self, batches: list[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
        """The batches that are kept, and new ones."""
        if self.is_settled:
            combined, self.is_settled = add(self.state.batches, batches, start_offset)
        else:
            combined = combine([*self.state.batches, *batches], start_offset)
            self.is_settled = is_settled(combined)
        return combined
