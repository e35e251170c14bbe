"""The pending offsets: those that open transactions have written.

Knows nothing of records and members. Follows Apache Kafka's ``OffsetMetadataManager``: of two offsets of a partition
the one whose record is later in the log is committed in the end, not the one whose transaction ends later. Compaction
keeps the last record, so anything else would change committed offsets.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from barnabas.offsets.committed import CommittedOffset

Position = tuple[str, int]
"""Topic and partition."""


class Producer(NamedTuple):
    """A transactional producer with its epoch."""

    id: int
    epoch: int


class Transaction(NamedTuple):
    """The open transaction of a producer in one partition of ``__consumer_offsets``; a marker there ends it."""

    partition: int
    producer_id: int


class PendingOffset(NamedTuple):
    """An offset and the partition that it belongs to."""

    group_id: str
    topic: str
    partition: int
    offset: CommittedOffset


Writers = dict[Transaction, CommittedOffset | None]
"""The transactions with an offset of one partition, in the order of their records. None if a later offset is committed.
"""

NOWHERE: dict[Position, Writers] = {}


class PendingOffsets:
    """Pending offsets by group and position, and by transaction.

    >>> pending = PendingOffsets()
    >>> transaction = Transaction(partition=3, producer_id=1000)
    >>> pending.put(transaction, "readers", "songs", 0, CommittedOffset(7, -1, "", 1_700_000_000_000))
    >>> pending.positions("readers")
    [('songs', 0)]
    >>> [(group_id, offset.offset) for group_id, _, _, offset in pending.commit(transaction)]
    [('readers', 7)]
    >>> pending.positions("readers")
    []
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[Position, Writers]] = {}
        self._transactions: dict[Transaction, dict[tuple[str, Position], None]] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    # ------------------------------------------------------------- looking

    def of(self, group_id: str) -> Collection[Position]:
        """Returns the positions of the group with a pending offset, which must not be changed."""
        return self._groups.get(group_id, NOWHERE)

    def positions(self, group_id: str) -> list[Position]:
        """Returns a copy of the positions of the group with a pending offset."""
        return list(self.of(group_id))

    def groups_of(self, topic: str) -> list[str]:
        """Returns the groups with a pending offset of the topic."""
        return [group_id for group_id, at in self._groups.items() if any(name == topic for name, _ in at)]

    # ------------------------------------------------------------ changing

    def put(self, transaction: Transaction, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        """Adds a pending offset, and replaces the transaction's former one of that partition."""
        position = (topic, partition)
        writers = self._groups.setdefault(group_id, {}).setdefault(position, {})
        writers.pop(transaction, None)
        writers[transaction] = offset
        self._transactions.setdefault(transaction, {})[group_id, position] = None

    def supersede(self, group_id: str, topic: str, partition: int) -> None:
        """Marks the pending offsets of a partition as older than a committed one: they will not be committed.

        The position stays unstable until their transactions end, as in Apache Kafka.
        """
        writers = self._groups.get(group_id, NOWHERE).get((topic, partition), {})
        for transaction in writers:
            writers[transaction] = None

    def commit(self, transaction: Transaction) -> list[PendingOffset]:
        """Ends the transaction, and returns those of its offsets that become committed."""
        return list(self._end(transaction, is_commit=True))

    def abort(self, transaction: Transaction) -> None:
        """Ends the transaction, and drops its offsets."""
        for _ in self._end(transaction, is_commit=False):
            pass

    def _end(self, transaction: Transaction, is_commit: bool) -> Iterator[PendingOffset]:
        for group_id, position in self._transactions.pop(transaction, {}):
            writers = self._groups[group_id][position]
            offset = writers[transaction]
            if is_commit and offset is not None:
                for earlier in writers:
                    if earlier == transaction:
                        break
                    writers[earlier] = None
                yield PendingOffset(group_id, *position, offset)
            del writers[transaction]
            if not writers:
                self._drop(group_id, position)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Drops the pending offsets of a partition. The position is no longer unstable."""
        position = (topic, partition)
        if position not in self.of(group_id):
            return
        for transaction in self._groups[group_id][position]:
            written = self._transactions[transaction]
            del written[group_id, position]
            if not written:
                del self._transactions[transaction]
        self._drop(group_id, position)

    def _drop(self, group_id: str, position: Position) -> None:
        positions = self._groups[group_id]
        del positions[position]
        if not positions:
            del self._groups[group_id]

    def clear(self) -> None:
        """Drops all pending offsets."""
        self._groups.clear()
        self._transactions.clear()
