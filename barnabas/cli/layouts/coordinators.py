"""The layouts of keys and values in the internal topics and the metadata log.

Knows nothing of batches. The fields of group and metadata records are those of ``barnabas.wire.messages``; the records
of transactions and share groups are declared here.
"""

from collections.abc import Callable
from typing import Any

from construct import Construct, ConstructError, Int8sb, Int16sb, Int32sb, Int64sb, Struct

from barnabas.cli.layouts import declared
from barnabas.cli.layouts.control import plain
from barnabas.cli.layouts.primitives import UUID, UVARINT, array, tagged, text

Decoded = tuple[Any, Any]
"""A decoded key and value; None for null."""


class NotSuchARecord(Exception):
    """The bytes are not a record of the expected topic."""


# ---------------------------------------------------------------- __consumer_offsets


def group_record(key: bytes | None, value: bytes | None) -> Decoded:
    """Decodes a record of ``__consumer_offsets``."""
    from barnabas.wire.messages.group_records import GroupKey

    kind, rest = _versioned(key, "key")
    known = GroupKey.by_type.get(kind)
    if known is None:
        raise NotSuchARecord(f"no record of groups has type {kind}")
    decoded_key = {"type": known.__name__.removesuffix("Key"), **_parse(declared.read, known, rest, 0)}
    if value is None:
        return decoded_key, None
    version, rest = _versioned(value, "value")
    if version not in known.value.versions:
        raise NotSuchARecord(f"{known.value.__name__} has no version {version}")
    return decoded_key, {"version": version, **_parse(declared.read, known.value, rest, version)}


# ---------------------------------------------------------------- __transaction_state

TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)

TRANSACTION_KEY = Struct("transactional_id" / text(compact=False))


def _transaction(version: int) -> Construct:
    compact = version >= 1
    end = ["tags" / tagged({})] if compact else []
    partitions = Struct("topic" / text(compact=compact), "partition_ids" / array(Int32sb, compact=compact), *end)
    fields = [
        "producer_id" / Int64sb,
        "producer_epoch" / Int16sb,
        "transaction_timeout_ms" / Int32sb,
        "transaction_status" / Int8sb,
        "transaction_partitions" / array(partitions, compact=compact, nullable=True),
        "transaction_last_update_timestamp_ms" / Int64sb,
        "transaction_start_timestamp_ms" / Int64sb,
    ]
    if compact:
        fields.append("tags" / tagged({0: Int64sb, 1: Int64sb, 2: Int16sb, 3: Int16sb}))
    return Struct(*fields)


TRANSACTION_VALUES = {version: _transaction(version) for version in (0, 1)}
_TRANSACTION_TAGS = {
    0: ("previous_producer_id", -1),
    1: ("next_producer_id", -1),
    2: ("client_transaction_version", 0),
    3: ("next_producer_epoch", -1),
}


def transaction_record(key: bytes | None, value: bytes | None) -> Decoded:
    """Decodes a record of ``__transaction_state``."""
    kind, rest = _versioned(key, "key")
    if kind != 0:
        raise NotSuchARecord(f"no record of transactions has type {kind}")
    decoded_key = {"type": "TransactionLog", **_parse(_of, TRANSACTION_KEY, rest)}
    if value is None:
        return decoded_key, None
    version, rest = _versioned(value, "value")
    if version not in TRANSACTION_VALUES:
        raise NotSuchARecord(f"a transaction's value has no version {version}")
    found = _parse(_of, TRANSACTION_VALUES[version], rest)
    tags = {each["tag"]: each["value"] for each in found.pop("tags", ())}
    if version >= 1:
        found |= {name: tags.get(tag, default) for tag, (name, default) in _TRANSACTION_TAGS.items()}
    status = found["transaction_status"]
    if 0 <= status < len(TRANSACTION_STATES):
        found["transaction_status"] = TRANSACTION_STATES[status]
    return decoded_key, {"version": version, **found}


# ---------------------------------------------------------------- __share_group_state

_SHARE_KEY = Struct("group_id" / text(compact=False), "topic_id" / UUID, "partition" / Int32sb)
_STATE_BATCHES = "state_batches" / array(
    Struct(
        "first_offset" / Int64sb,
        "last_offset" / Int64sb,
        "delivery_state" / Int8sb,
        "delivery_count" / Int16sb,
        "tags" / tagged({}),
    ),
    compact=True,
)
_SHARE_TAGS = "tags" / tagged({0: Int32sb})
SHARE_SNAPSHOT = Struct(
    "snapshot_epoch" / Int32sb,
    "state_epoch" / Int32sb,
    "leader_epoch" / Int32sb,
    "start_offset" / Int64sb,
    "create_timestamp" / Int64sb,
    "write_timestamp" / Int64sb,
    _STATE_BATCHES,
    _SHARE_TAGS,
)
SHARE_UPDATE = Struct(
    "snapshot_epoch" / Int32sb, "leader_epoch" / Int32sb, "start_offset" / Int64sb, _STATE_BATCHES, _SHARE_TAGS
)
_SHARES = {0: ("ShareSnapshot", SHARE_SNAPSHOT), 1: ("ShareUpdate", SHARE_UPDATE)}


def share_record(key: bytes | None, value: bytes | None) -> Decoded:
    """Decodes a record of ``__share_group_state``."""
    kind, rest = _versioned(key, "key")
    if kind not in _SHARES:
        raise NotSuchARecord(f"no record of share groups' state has type {kind}")
    name, layout = _SHARES[kind]
    decoded_key = {"type": name, **_parse(_of, _SHARE_KEY, rest)}
    if value is None:
        return decoded_key, None
    version, rest = _versioned(value, "value")
    if version != 0:
        raise NotSuchARecord(f"{name}'s value has no version {version}")
    found = _parse(_of, layout, rest)
    tags = {each["tag"]: each["value"] for each in found.pop("tags", ())}
    return decoded_key, {"version": version, **found, "delivery_complete_count": tags.get(0, -1)}


# ---------------------------------------------------------------- __cluster_metadata

FRAME = Struct("frame_version" / UVARINT, "api_key" / UVARINT, "version" / UVARINT)
FRAME_VERSION = 1


def metadata_record(key: bytes | None, value: bytes | None) -> Decoded:
    """Decodes a record of ``__cluster_metadata`` or of its snapshots, which have no keys."""
    from barnabas.wire.messages.metadata_records import MetadataRecord

    frame = _parse(_of, FRAME, value or b"")
    if frame["frame_version"] != FRAME_VERSION:
        raise NotSuchARecord(f"the frame's version is {frame['frame_version']}")
    known = MetadataRecord.by_key.get(frame["api_key"])
    if known is None or frame["version"] not in known.versions:
        raise NotSuchARecord(f"no metadata record has key {frame['api_key']} and version {frame['version']}")
    size = sum(max(1, -(-number.bit_length() // 7)) for number in frame.values())
    fields = _parse(declared.read, known, (value or b"")[size:], frame["version"])
    return None, {"type": known.__name__, "version": frame["version"], **fields}


DECODERS: dict[str, Callable[[bytes | None, bytes | None], Decoded]] = {
    "offsets": group_record,
    "transactions": transaction_record,
    "shares": share_record,
    "metadata": metadata_record,
}
OF_TOPIC = {
    "__consumer_offsets": "offsets",
    "__transaction_state": "transactions",
    "__share_group_state": "shares",
    "__cluster_metadata": "metadata",
}


def _versioned(content: bytes | None, what: str) -> tuple[int, bytes]:
    if content is None or len(content) < 2:
        raise NotSuchARecord(f"a {what} of less than two bytes")
    return int.from_bytes(content[:2], signed=True), content[2:]


def _of(layout: Construct, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = plain(layout.parse(content))
    return found


def _parse(read: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    try:
        return read(*arguments)
    except ConstructError as error:
        raise NotSuchARecord(" ".join(str(error).split())) from error
