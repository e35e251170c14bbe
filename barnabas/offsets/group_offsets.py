"""All offsets of all groups: those that are committed, and those that are pending in open transactions.

Knows nothing of records or members, nor of who may commit.
"""

from collections.abc import Collection, Iterator

from barnabas.offsets.committed import CommittedOffset, CommittedOffsets
from barnabas.offsets.pending import PendingOffsets, Position, Transaction


class GroupOffsets(CommittedOffsets):
    """Committed and pending offsets. Only committed ones are returned.

    Every change has to be made in the order of the log.

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
        """Commits an offset. Pending offsets of the partition that are older can no longer become committed."""
        super().put(group_id, topic, partition, committed)
        if self._pending:
            self._pending.supersede(group_id, topic, partition)

    def put_pending(
        self, transaction: Transaction, group_id: str, topic: str, partition: int, offset: CommittedOffset
    ) -> None:
        """Adds an offset that is committed if the transaction commits."""
        self._pending.put(transaction, group_id, topic, partition, offset)

    def end(self, transaction: Transaction, is_commit: bool) -> None:
        """Ends a transaction: its marker is in the log. Does nothing if the transaction has no offsets here."""
        if not is_commit:
            self._pending.abort(transaction)
            return
        for group_id, topic, partition, offset in self._pending.commit(transaction):
            super().put(group_id, topic, partition, offset)

    def unstable(self, group_id: str) -> Collection[Position]:
        """Returns the positions with a pending offset, which must not be changed."""
        return self._pending.of(group_id)

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        """Returns whether the partition has an offset, committed or pending."""
        return self.get(group_id, topic, partition) is not None or (topic, partition) in self.unstable(group_id)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Removes the committed and the pending offsets of a partition."""
        super().remove(group_id, topic, partition)
        if self._pending:
            self._pending.remove(group_id, topic, partition)

    def clear(self) -> None:
        super().clear()
        self._pending.clear()

    def positions(self, group_id: str) -> Iterator[Position]:
        """Yields each (topic, partition) of the group: first the committed ones, then those that are only pending."""
        yield from super().positions(group_id)
        for topic, partition in self._pending.positions(group_id):
            if self.get(group_id, topic, partition) is None:
                yield topic, partition

    def groups_of(self, topic: str) -> list[str]:
        """Returns the groups that have an offset of the topic, committed or pending."""
        found = super().groups_of(topic)
        return list(dict.fromkeys([*found, *self._pending.groups_of(topic)])) if self._pending else found
