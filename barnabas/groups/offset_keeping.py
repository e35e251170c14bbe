"""The offsets of groups: commits, fetches, deletion and expiry (Kafka's ``OffsetMetadataManager``).

Knows nothing of rebalances and logs. Whether a member may commit is decided by its group.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence

from barnabas.clock import Clock
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    NotCoordinator,
    OffsetMetadataTooLarge,
    UnknownServerError,
)
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.config import GroupConfig
from barnabas.groups.group import Group
from barnabas.groups.ledger import Ledger, Pair, Write, Written, log_failure
from barnabas.groups.messages import DeletionReply, ErrorsReply, OffsetCommit, OffsetsReply
from barnabas.groups.records import has_place_for
from barnabas.integers import MAX_LONG
from barnabas.offsets.committed import NO_EXPIRY, CommittedOffset, Topics
from barnabas.offsets.group_offsets import GroupOffsets
from barnabas.offsets.pending import Producer, Transaction
from barnabas.offsets.records import Record, commit_record, tombstone
from barnabas.wire.messages.group_records import OffsetCommitKey

logger = logging.getLogger(__name__)

CONSUMER = "consumer"
"""The type of consumer groups."""

SHARE = "share"
"""The type of share groups, which do not commit offsets: their progress is the state of their share partitions."""

ByPartition = list[tuple[str, int, CommittedOffset]]
"""The offsets of one commit: topic, partition and offset."""


class OffsetKeeping:
    """The part of the group coordinator that stores offsets."""

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        deadlines: Deadlines,
        ledger: Ledger,
        *,
        write: Write,
        index: int,
    ) -> None:
        """:param index: the partition of ``__consumer_offsets``"""
        self.config = config
        self.offsets = GroupOffsets()
        self._groups: dict[str, Group] = {}
        self._unsafe: dict[str, list[ByPartition]] = {}
        """The commits that are in the log and not durable yet, by group. They are not visible, and are deleted with the
        group."""
        self._clock = clock
        self._deadlines = deadlines
        self._ledger = ledger
        self._append = write
        self._index = index
        self._retention_check = Deadline(self._check_retention)

    # ----------------------------------------------------------------- groups

    def _create(self, group_id: str) -> ClassicGroup:
        if not has_place_for(group_id):
            raise UnknownServerError("a group with an id of that length cannot be kept")
        group = self._groups[group_id] = ClassicGroup(group_id, self._clock.time_ms())
        return group

    def _delete(self, group: Group, written: Written) -> None:
        """Writes the tombstones of the group and its offsets."""
        group_id = group.group_id
        positions = list(dict.fromkeys((*self.offsets.positions(group_id), *self._unsafe_positions(group_id))))

        def then(error: KafkaError | None) -> None:
            if error is None:
                # Some commits precede these tombstones in the log, and have become durable only after they were
                # appended.
                for position in positions:
                    self.offsets.remove(group_id, *position)
                self._drop_if_bare(group_id)
            written(error)

        records: list[Pair] = [
            (OffsetCommitKey(group=group_id, topic=topic, partition=partition), None) for topic, partition in positions
        ]
        self._ledger.commit(group_id, [*records, *group.tombstones()], then)

    def _unsafe_positions(self, group_id: str) -> Iterator[tuple[str, int]]:
        for committed_offsets in self._unsafe.get(group_id, ()):
            for topic, partition, _ in committed_offsets:
                yield topic, partition

    def _drop_if_bare(self, group_id: str) -> None:
        """Drops a group that was created for a commit that failed."""
        group = self._groups.get(group_id)
        if (
            isinstance(group, ClassicGroup)
            and group.protocol_type is None
            and _is_abandoned(group)
            and next(self.offsets.positions(group_id), None) is None
        ):
            del self._groups[group_id]

    def _write(
        self, group_id: str, records: Sequence[Record], written: Written, producer: Producer | None = None
    ) -> None:
        """Appends records of a group. The group becomes visible with its first durable record."""

        def then(error: KafkaError | None) -> None:
            if error is None and (group := self._groups.get(group_id)) is not None:
                group.is_written = True
            written(error)

        self._append(group_id, records, then, producer)

    def _note_commit(self, group: Group, member_id: str) -> None:
        """Notes that a member has committed. For classic groups that counts as a heartbeat."""

    # ---------------------------------------------------------------- offsets

    def commit_offsets(self, commit: OffsetCommit, reply: ErrorsReply) -> None:
        """Commits offsets, and replies with a result for each.

        A commit with a producer is a TxnOffsetCommit. The caller has checked that the group is part of the transaction.

        :raises KafkaError: none of them can be committed
        """
        group = self._committing(commit)
        if commit.producer is None:
            self._note_commit(group, commit.member_id)
        now_ms = self._clock.time_ms()
        expires_ms = NO_EXPIRY
        if commit.retention_time_ms != NO_EXPIRY:
            expires_ms = min(now_ms + commit.retention_time_ms, MAX_LONG)
        errors: list[KafkaError | None] = []
        committed_offsets: ByPartition = []
        for each in commit.offsets:
            if each.metadata is not None and _utf16_length(each.metadata) > self.config.offset_metadata_max_bytes:
                errors.append(OffsetMetadataTooLarge())
                continue
            errors.append(None)
            committed = CommittedOffset(
                each.offset, each.leader_epoch, each.metadata or "", now_ms, expires_ms, each.topic_id
            )
            committed_offsets.append((each.topic, each.partition, committed))
        if not committed_offsets:
            reply(errors)
            return

        unsafe = self._unsafe.setdefault(commit.group_id, [])
        unsafe.append(committed_offsets)

        def written(error: KafkaError | None) -> None:
            unsafe.remove(committed_offsets)
            if self._unsafe.get(commit.group_id) is not unsafe:
                error = error or NotCoordinator()  # the coordinator has resigned
            elif not unsafe:
                del self._unsafe[commit.group_id]
            if error is not None:
                self._withdraw(group)
                reply([each or error for each in errors])
                return
            if commit.group_id not in self._groups:  # the group was deleted during the write
                self._create(commit.group_id).is_written = True
            for each in committed_offsets:
                self._put(commit.group_id, each, commit.producer)
            reply(errors)

        records = [commit_record(commit.group_id, *each) for each in committed_offsets]
        self._write(commit.group_id, records, written, commit.producer)

    def _put(self, group_id: str, committed: tuple[str, int, CommittedOffset], producer: Producer | None) -> None:
        if producer is None:
            self.offsets.put(group_id, *committed)
        else:
            self.offsets.put_pending(Transaction(self._index, producer.id), group_id, *committed)

    def _committing(self, commit: OffsetCommit) -> Group:
        """Returns the group of a commit. A simple consumer's first commit creates it."""
        group = self._groups.get(commit.group_id)
        if group is None:
            if commit.generation_id >= 0:
                raise GroupIdNotFound if commit.knows_group_id_not_found else IllegalGeneration
            group = self._create(commit.group_id)
        group.validate_offset_commit(commit)
        return group

    def _withdraw(self, group: Group) -> None:
        """Drops the group of a failed commit if it has no record."""
        if not group.is_written and self._groups.get(group.group_id) is group:
            self._drop_if_bare(group.group_id)

    def fetch_offsets(self, group_id: str, member_id: str | None = None, member_epoch: int = -1) -> Topics:
        """Handles an OffsetFetch. Returns the group's offsets, which must not be modified; none if there is no such
        group.

        A member of a newer type sends its id and its epoch, which are checked.
        :raises KafkaError: the member or its epoch is not valid
        """
        group = self._groups.get(group_id)
        if group is not None:
            group.validate_offset_fetch(member_id, member_epoch)
        return self.offsets.of(group_id)

    def fetch_stable_offsets(
        self, group_id: str, reply: OffsetsReply, member_id: str | None = None, member_epoch: int = -1
    ) -> None:
        """Handles an OffsetFetch with ``require_stable``. Replies with the group's offsets, and the partitions for
        which open transactions have pending ones (KIP-447), once all that was appended before is durable.

        A coordinator whose successor has been elected without its knowledge cannot replicate what it appends. It does
        not reply with offsets that may be old, but NOT_COORDINATOR in the end, so that the client looks for the other
        one (``GroupCoordinatorService.handleOffsetFetchException``).
        :raises KafkaError: the member or its epoch is not valid
        """
        self.fetch_offsets(group_id, member_id, member_epoch)

        def written(error: KafkaError | None) -> None:
            if error is not None:
                reply(NotCoordinator() if isinstance(error, CoordinatorNotAvailable) else error, {}, ())
            else:
                reply(None, self.offsets.of(group_id), self.offsets.unstable(group_id))

        self._append(group_id, (), written)

    def delete_offsets(self, group_id: str, positions: Sequence[tuple[str, int]], reply: DeletionReply) -> None:
        """Handles an OffsetDelete of partitions that exist. Replies once all that was written is durable.
        :raises KafkaError: the whole request is refused
        """
        group = self._groups.get(group_id)
        if group is None or group.type == SHARE:
            raise GroupIdNotFound
        if not group.is_empty and not group.is_consumer_group:
            raise NonEmptyGroup
        errors: list[KafkaError | None] = [
            GroupSubscribedToTopic() if group.is_subscribed_to(topic) else None for topic, _ in positions
        ]
        removable = [position for position, error in zip(positions, errors, strict=True) if error is None]
        self._remove_offsets(group_id, removable, lambda failure: reply(failure, errors))

    def _remove_offsets(self, group_id: str, positions: Iterable[tuple[str, int]], written: Written) -> None:
        """Writes the tombstones of those offsets that exist. Without any, what was written before is waited for."""
        unsafe = set(self._unsafe_positions(group_id))
        present = [each for each in dict.fromkeys(positions) if each in unsafe or self.offsets.has(group_id, *each)]

        def then(error: KafkaError | None) -> None:
            if error is None:
                for topic, partition in present:
                    self.offsets.remove(group_id, topic, partition)
            written(error)

        if present:
            self._write(group_id, [tombstone(group_id, *each) for each in present], then)
        else:
            self._append(group_id, (), written)

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Removes the offsets of deleted topics."""
        for topic in topics:
            for group_id in self.offsets.groups_of(topic):
                positions = [each for each in self.offsets.positions(group_id) if each[0] == topic]
                logger.info("group %s: removing %d offsets of the deleted topic %s", group_id, len(positions), topic)
                self._remove_offsets(group_id, positions, log_failure(group_id, "tombstones of offsets"))

    # -------------------------------------------------------------- retention

    def expire_offsets(self) -> None:
        """Removes expired offsets, and empty groups without offsets."""
        for group in list(self._groups.values()):
            expired, keeps_some = self._expired(group)
            if not keeps_some and _is_abandoned(group):
                logger.info("group %s: removed, without members and offsets", group.group_id)
                self._delete(group, log_failure(group.group_id, "its tombstones"))
            elif expired:
                logger.info("group %s: removing %d expired offsets", group.group_id, len(expired))
                self._remove_offsets(group.group_id, expired, log_failure(group.group_id, "tombstones of offsets"))

    def _expired(self, group: Group) -> tuple[list[tuple[str, int]], bool]:
        """Returns the expired offsets, and whether there are others. Positions with pending offsets have not
        expired."""
        now_ms, retention_ms = self._clock.time_ms(), self.config.offsets_retention_ms
        unstable = self.offsets.unstable(group.group_id)
        expired, keeps_some = [], bool(unstable)
        for topic, partitions in self.offsets.of(group.group_id).items():
            is_needed = group.is_subscribed_to(topic)
            for partition, committed in partitions.items():
                is_kept = is_needed or (topic, partition) in unstable
                base_ms = None if is_kept else group.expiry_base_ms(committed.commit_timestamp_ms)
                if base_ms is not None and committed.is_expired(base_ms, now_ms, retention_ms):
                    expired.append((topic, partition))
                else:
                    keeps_some = True
        return expired, keeps_some

    def _check_retention(self) -> None:
        self._deadlines.set(self._retention_check, self.config.offsets_retention_check_interval_ms / 1000)
        self.expire_offsets()


def _is_abandoned(group: Group) -> bool:
    """Returns whether the group has no members, nor pending ones. Share groups are kept until they are deleted."""
    if group.type == SHARE:
        return False
    return group.is_empty and not (isinstance(group, ClassicGroup) and group.pending_members)


def _utf16_length(text: str) -> int:
    """Returns the length in Java: the number of UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
