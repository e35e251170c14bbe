"""The records of classic groups in ``__consumer_offsets``.

Knows nothing of logs and batches, nor of the records of offsets in the same topic (``offsets/records.py``).
"""

from collections.abc import Mapping

from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.ledger import VERSIONS
from barnabas.offsets.records import Record
from barnabas.wire.messages.group_records import GroupMetadataKey, GroupMetadataValue, encode_key, encode_value

VERSION = VERSIONS[GroupMetadataValue]

LONGEST_TEXT = (1 << 15) - 1
"""The longest string in UTF-8 that a record can hold. Requests can have longer ones."""

NO_TIMESTAMP = -1
"""The timestamp of a group from a log that did not store one."""


def has_place_for(*texts: str | None, spare: int = 0) -> bool:
    """Returns whether each of these strings, with ``spare`` more bytes, is short enough for a record."""
    return all(text is None or len(text.encode()) + spare <= LONGEST_TEXT for text in texts)


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> Record:
    """Returns the record of a group with these assignments (Kafka's ``newGroupMetadataRecord``)."""
    key, value = group_pair(group, assignments)
    return encode_key(key), encode_value(value, VERSION)


def group_pair(group: ClassicGroup, assignments: Mapping[str, bytes]) -> tuple[GroupMetadataKey, GroupMetadataValue]:
    """Returns the same as key and value."""
    protocol_name = group.protocol_name
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=protocol_name,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP if group.state_timestamp_ms is None else group.state_timestamp_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol_name or ""),
                assignment=assignments[member.member_id],
            )
            for member in group.members.values()
        ],
    )
    return GroupMetadataKey(group=group.group_id), value


def new_group_record(group: ClassicGroup) -> Record:
    """Returns the record of a new group without members (Kafka's ``newEmptyGroupMetadataRecord``)."""
    key, value = new_group_pair(group)
    return encode_key(key), encode_value(value, VERSION)


def new_group_pair(group: ClassicGroup) -> tuple[GroupMetadataKey, GroupMetadataValue]:
    """Returns the same as key and value."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=NO_TIMESTAMP if group.state_timestamp_ms is None else group.state_timestamp_ms,
        members=[],
    )
    return GroupMetadataKey(group=group.group_id), value
