"""Applies the records of ``__consumer_offsets`` to groups and offsets.

Knows nothing of logs, and starts no timers: the sessions of members begin when the shard has loaded its partition.
"""

from barnabas.clock import Clock
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.classic_member import ClassicMember
from barnabas.groups.group import Group
from barnabas.groups.ledger import Applier, Ledger
from barnabas.groups.rebalance import Rebalance
from barnabas.groups.records import NO_TIMESTAMP
from barnabas.offsets.committed import CommittedOffset
from barnabas.offsets.group_offsets import GroupOffsets
from barnabas.offsets.pending import Transaction
from barnabas.offsets.records import committed_offset
from barnabas.wire.coordinator_records import CoordinatorKey
from barnabas.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)


class Replay:
    """Applies records to groups and offsets. Those of the newer types go through the ledger."""

    def __init__(
        self,
        groups: dict[str, Group],
        offsets: GroupOffsets,
        rebalance: Rebalance,
        clock: Clock,
        ledger: Ledger,
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._rebalance = rebalance
        self._clock = clock
        self._ledger = ledger
        self.appliers: dict[type[CoordinatorKey], Applier] = {
            LegacyOffsetCommitKey: self._offset,
            OffsetCommitKey: self._offset,
            GroupMetadataKey: self._group,
        }

    def replay(self, key: bytes, value: bytes | None, transaction: Transaction | None = None) -> None:
        """Applies one record. One of an unknown type is ignored. :raises MalformedMessage: it cannot be decoded

        An offset that was written in a transaction waits for its end.
        """
        decoded = decode_key(key)
        if decoded is None:
            return
        understood = None if value is None else decode_value(decoded, value)
        if transaction is not None and isinstance(decoded, (OffsetCommitKey, LegacyOffsetCommitKey)):
            self._offset(decoded, understood, transaction)  # type: ignore[arg-type]
        else:
            self._ledger.apply(decoded, understood)

    def _offset(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        transaction: Transaction | None = None,
    ) -> None:
        if value is None:
            self._offsets.remove(key.group, key.topic, key.partition)
            return
        group = self._groups.get(key.group)
        if group is None:
            # A simple consumer's group has no record of its own.
            group = self._groups[key.group] = ClassicGroup(key.group, self._clock.time_ms())
        group.is_written = True
        position = (key.group, key.topic, key.partition)
        if transaction is None:
            self._offsets.put(*position, _committed(value))
        else:
            self._offsets.put_pending(transaction, *position, _committed(value))

    def _group(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        former = self._groups.get(key.group)
        if isinstance(former, ClassicGroup):
            del self._groups[key.group]
            former.close()
        if value is None:
            return
        group = ClassicGroup(
            key.group,
            self._clock.time_ms(),
            generation_id=value.generation,
            protocol_type=value.protocol_type or None,
            protocol_name=value.protocol,
            leader_id=value.leader,
        )
        group.is_written = True
        group.state = State.STABLE if value.members else State.EMPTY
        timestamp = value.current_state_timestamp
        group.state_timestamp_ms = None if timestamp == NO_TIMESTAMP else timestamp
        for each in value.members:
            group.add(self._member(group, each), value.protocol_type)
        group.compute_subscribed_topics()
        self._groups[key.group] = group

    def _member(self, group: ClassicGroup, value: GroupMetadataValue.MemberMetadata) -> ClassicMember:
        member = ClassicMember(
            value.member_id,
            value.group_instance_id,
            value.client_id,
            value.client_host,
            value.session_timeout if value.rebalance_timeout == -1 else value.rebalance_timeout,
            value.session_timeout,
            # The record has the metadata for the selected protocol only.
            ((group.protocol_name or "", bytes(value.subscription)),),
            self._rebalance.session(group, value.member_id),
        )
        member.assignment = bytes(value.assignment)
        return member


def _committed(value: OffsetCommitValue | LegacyOffsetCommitValue) -> CommittedOffset:
    if isinstance(value, LegacyOffsetCommitValue):
        return CommittedOffset(value.offset, -1, value.metadata, value.commit_timestamp)
    return committed_offset(value)
