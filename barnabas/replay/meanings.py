"""The meaning of message fields for a replay: which differ from run to run, and which are ids that the broker assigns.

Knows nothing of values. Fields with these meanings have the same few names in all messages.
"""

from enum import Enum
from typing import Any, Final

from barnabas.wire.schema import Field, Struct
from barnabas.wire.types import Sized


class Meaning(Enum):
    """The meaning of a field whose value is not compared literally."""

    PASSING = "differs from run to run: a time, an address, the size of a disk"
    NODE = "the id of a node"
    LOG_DIR = "paths of log directories, separated by commas"
    TOPIC_ID = "the id of a topic"
    MEMBER_ID = "the id of a member of a group"
    SESSION_ID = "the id of a fetch session"
    PRODUCER_ID = "the id of a producer"
    PRODUCER_EPOCH = "an epoch of a producer"
    GENERATION = "an epoch of a group or of its members"
    LEADER_EPOCH = "an epoch of a partition's leaders"
    OFFSET = "an offset of a partition"
    RECORDS = "batches of records"


_NAMES: Final = {
    Meaning.PASSING: (
        "broker_epoch", "client_host", "cluster_id", "expiry_timestamp", "expiry_timestamp_ms",
        "finalized_features_epoch", "high_watermark", "hmac", "issue_timestamp", "issue_timestamp_ms",
        "last_caught_up_timestamp", "last_fetch_timestamp", "last_stable_offset", "last_timestamp",
        "log_append_time_ms", "max_timestamp", "max_timestamp_ms", "offset_lag", "partition_size",
        "replica_directory_id", "session_lifetime_ms", "throttle_time_ms", "timestamp", "token_id", "total_bytes",
        "transaction_start_time_ms", "usable_bytes",
    ),
    Meaning.NODE: (
        "adding_replicas", "broker_id", "controller_id", "eligible_leader_replicas", "isr_nodes", "last_known_elr",
        "leader_id", "node_id", "offline_replicas", "preferred_read_replica", "removing_replicas", "replica_id",
        "replica_nodes", "replicas",
    ),
    Meaning.LOG_DIR: ("log_dir", "path"),
    Meaning.TOPIC_ID: ("topic_id",),
    Meaning.MEMBER_ID: ("member_id",),
    Meaning.SESSION_ID: ("session_id",),
    Meaning.PRODUCER_ID: ("ongoing_txn_producer_id", "producer_id", "v3_and_below_producer_id"),
    Meaning.PRODUCER_EPOCH: ("ongoing_txn_producer_epoch", "producer_epoch", "v3_and_below_producer_epoch"),
    Meaning.GENERATION: (
        "assignment_epoch", "generation_id", "generation_id_or_member_epoch", "group_epoch", "member_epoch",
    ),
    Meaning.LEADER_EPOCH: ("committed_leader_epoch", "current_leader_epoch", "last_fetched_epoch", "leader_epoch"),
    Meaning.OFFSET: (
        "base_offset", "committed_offset", "current_txn_start_offset", "end_offset", "fetch_offset", "first_offset",
        "last_offset", "log_start_offset", "low_watermark", "offset", "start_offset",
    ),
}  # fmt: skip
_MEANINGS: Final = {name: meaning for meaning, names in _NAMES.items() for name in names}
_OF_JOIN_GROUP: Final = {"leader": Meaning.MEMBER_ID}
_LOG_DIR_CONFIGS: Final = ("log.dir", "log.dirs", "metadata.log.dir")
_OF_ADDRESSES: Final = dict.fromkeys(("host", "port", "rack"), Meaning.PASSING)


def meaning_of(structure: Struct, field: Field) -> Meaning | None:
    """Returns the meaning of a field; None if its value is compared and sent literally.

    >>> from barnabas.wire.messages.fetch import FetchRequest
    >>> request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[])
    >>> {field.name: meaning_of(request, field) for field in FetchRequest.wire_fields()}["session_id"]
    <Meaning.SESSION_ID: 'the id of a fetch session'>
    """
    if isinstance(field.kind, Sized) and field.kind.shape == "records":
        return Meaning.RECORDS
    found = _MEANINGS.get(field.name)
    if found is not None:
        return found
    if field.name in _OF_ADDRESSES and is_address(structure):  # an ACL has a host, but no port
        return _OF_ADDRESSES[field.name]
    if field.name == "value" and getattr(structure, "name", None) in _LOG_DIR_CONFIGS:
        return Meaning.LOG_DIR
    return _OF_JOIN_GROUP.get(field.name) if type(structure).__name__ == "JoinGroupResponse" else None


def is_address(structure: Any) -> bool:
    """Returns whether a structure is the address of a node."""
    return hasattr(structure, "host") and hasattr(structure, "port")


def is_given(value: Any) -> bool:
    """Returns whether an id, epoch or offset is set: not -1, empty, null or zero bytes."""
    return any(value) if isinstance(value, bytes | memoryview) else value not in (None, "", -1)
