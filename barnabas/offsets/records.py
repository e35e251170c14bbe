"""The records of committed offsets in ``__consumer_offsets``: keys and values.

Knows nothing of logs and batches, nor of the records of groups in the same topic (``groups/records.py``).
"""

from barnabas.offsets.committed import NO_EXPIRY, CommittedOffset
from barnabas.wire.messages.group_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value

Record = tuple[bytes, bytes | None]
"""Key and value; None as the value is a tombstone."""

VERSION = 4
"""The version that has the topic's id (Kafka 4.1)."""

VERSION_WITH_EXPIRY = 1
"""The only version that has an expiry, for commits with their own retention. It has no leader epoch."""


def commit_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> Record:
    """Returns the record of a committed offset (Kafka's ``GroupCoordinatorRecordHelpers.newOffsetCommitRecord``)."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    version = VERSION if committed.expire_timestamp_ms == NO_EXPIRY else VERSION_WITH_EXPIRY
    return _key(group_id, topic, partition), encode_value(value, version)


def tombstone(group_id: str, topic: str, partition: int) -> Record:
    """Returns the record that removes a committed offset."""
    return _key(group_id, topic, partition), None


def committed_offset(value: OffsetCommitValue) -> CommittedOffset:
    """Returns the offset in a value of any version. Fields that the version lacks have their defaults."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )


def _key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic=topic, partition=partition))
