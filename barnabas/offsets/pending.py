"""The offsets of transactions that have not ended: who has written which, and which can still become visible.

Knows nothing of records, of members, nor of what has been committed but that something was. Rules of Apache Kafka's
``OffsetMetadataManager``: of the offsets of one partition, the one whose record is later in the log counts, and not
the one whose transaction ends later; otherwise compaction, which keeps the last record, would change what is committed.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from barnabas.offsets.committed import CommittedOffset

Position = tuple[str, int]
"""Topic and partition."""


class Producer(NamedTuple):
    """A transactional producer, in one of its incarnations."""

    id: int
    epoch: int


class Transaction(NamedTuple):
    """What a producer has open in one partition of ``__consumer_offsets``, which is ended by a marker there."""

    partition: int
    producer_id: int


class PendingOffset(NamedTuple):
    """An offset, and whose it is."""

    group_id: str
    topic: str
    partition: int
    offset: CommittedOffset


Writers = dict[Transaction, CommittedOffset | None]
"""The transactions with an offset of one partition, the latest record last; None where something committed is later."""

NOWHERE: dict[Position, Writers] = {}


class PendingOffsets:
    """By group and position, and by transaction.

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
        """The positions of the group that some transaction is about to change. Not to be changed."""
        return self._groups.get(group_id, NOWHERE)

    def positions(self, group_id: str) -> list[Position]:
        """The same, as they are now."""
        return list(self.of(group_id))

    def groups_of(self, topic: str) -> list[str]:
        """The groups with a pending offset of that topic."""
        return [group_id for group_id, at in self._groups.items() if any(name == topic for name, _ in at)]

    # ------------------------------------------------------------ changing

    def put(self, transaction: Transaction, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        """The transaction would commit this; what it wrote of that partition before is gone."""
        position = (topic, partition)
        writers = self._groups.setdefault(group_id, {}).setdefault(position, {})
        writers.pop(transaction, None)
        writers[transaction] = offset
        self._transactions.setdefault(transaction, {})[group_id, position] = None

    def outdate(self, group_id: str, topic: str, partition: int) -> None:
        """Something later is committed there. The position stays unstable, as in Apache Kafka, until those end."""
        writers = self._groups.get(group_id, NOWHERE).get((topic, partition), {})
        for transaction in writers:
            writers[transaction] = None

    def commit(self, transaction: Transaction) -> list[PendingOffset]:
        """End it well: those of its offsets that are committed now, for nothing later is."""
        return list(self._end(transaction, is_commit=True))

    def abort(self, transaction: Transaction) -> None:
        """End it: nothing of it remains."""
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
        """Whoever wrote it: none of it becomes visible, and nothing is unstable any more."""
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
        """Forget them all."""
        self._groups.clear()
        self._transactions.clear()
