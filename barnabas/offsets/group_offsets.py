"""All offsets of all groups: what is committed, and what transactions may still commit, kept in step.

Knows nothing of records, of members, or of who may commit.
"""

from collections.abc import Collection, Iterator

from barnabas.offsets.committed import CommittedOffset, CommittedOffsets
from barnabas.offsets.pending import PendingOffsets, Position, Transaction


class GroupOffsets(CommittedOffsets):
    """Told of each change in the order of the log, it shows what the log says; only what is committed is shown.

    >>> offsets = GroupOffsets()
    >>> transaction = Transaction(partition=3, producer_id=1000)
    >>> offsets.put_pending(transaction, "readers", "songs", 0, CommittedOffset(7, -1, "", 1_700_000_000_000))
    >>> offsets.of("readers"), list(offsets.unstable("readers"))
    ({}, [('songs', 0)])
    >>> offsets.end(transaction, is_commit=True)
    >>> offsets.of("readers")["songs"][0].offset, list(offsets.unstable("readers"))
    (7, [])
    """

    def __init__(self) -> None:
        super().__init__()
        self._pending = PendingOffsets()

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Commit; what was there is gone, and what transactions wrote there before can no longer become visible."""
        super().put(group_id, topic, partition, committed)
        if self._pending:
            self._pending.outdate(group_id, topic, partition)

    def put_pending(
        self, transaction: Transaction, group_id: str, topic: str, partition: int, offset: CommittedOffset
    ) -> None:
        """Commit, if the transaction does."""
        self._pending.put(transaction, group_id, topic, partition, offset)

    def end(self, transaction: Transaction, is_commit: bool) -> None:
        """The marker of a transaction is in the log; harmless when it has no offsets here."""
        if not is_commit:
            self._pending.abort(transaction)
            return
        for group_id, topic, partition, offset in self._pending.commit(transaction):
            super().put(group_id, topic, partition, offset)

    def unstable(self, group_id: str) -> Collection[Position]:
        """The positions that some transaction is about to change. Not to be changed."""
        return self._pending.of(group_id)

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether there is anything to take away, be it committed or pending."""
        return self.get(group_id, topic, partition) is not None or (topic, partition) in self.unstable(group_id)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget one, and what transactions would make of it; harmless when there is none."""
        super().remove(group_id, topic, partition)
        if self._pending:
            self._pending.remove(group_id, topic, partition)

    def clear(self) -> None:
        super().clear()
        self._pending.clear()

    def positions(self, group_id: str) -> Iterator[Position]:
        """Each (topic, partition) of the group: the committed ones, then others that are pending."""
        yield from super().positions(group_id)
        for topic, partition in self._pending.positions(group_id):
            if self.get(group_id, topic, partition) is None:
                yield topic, partition

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have an offset of that topic, be it committed or pending."""
        found = super().groups_of(topic)
        return list(dict.fromkeys([*found, *self._pending.groups_of(topic)])) if self._pending else found
