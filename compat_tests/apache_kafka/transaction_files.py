"""Parses the files of transactions on a broker's disk: records, markers, aborted transactions, producer states.

A second, independent implementation of the formats: must not know ``barnabas``, nor whose directory it reads.
"""

import struct
from pathlib import Path
from typing import Any

from .batches import contents, contents_of, parse
from .codec import declared, decode

TRANSACTION_KEY, OFFSET_KEY = 0, 1
"""The types of the keys in the topics of the coordinators."""

TAGGED = {"versions": "1+", "taggedVersions": "1+"}

VALUE = declared(
    {
        "name": "TransactionLogValue",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [
            {"name": "ProducerId", "type": "int64", "versions": "0+"},
            {"name": "PreviousProducerId", "type": "int64", "tag": 0, "default": -1, **TAGGED},
            {"name": "NextProducerId", "type": "int64", "tag": 1, "default": -1, **TAGGED},
            {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
            {"name": "NextProducerEpoch", "type": "int16", "tag": 3, "default": -1, **TAGGED},
            {"name": "TransactionTimeoutMs", "type": "int32", "versions": "0+"},
            {"name": "TransactionStatus", "type": "int8", "versions": "0+"},
            {
                "name": "TransactionPartitions",
                "type": "[]PartitionsSchema",
                "versions": "0+",
                "nullableVersions": "0+",
                "fields": [
                    {"name": "Topic", "type": "string", "versions": "0+"},
                    {"name": "PartitionIds", "type": "[]int32", "versions": "0+"},
                ],
            },
            {"name": "TransactionLastUpdateTimestampMs", "type": "int64", "versions": "0+"},
            {"name": "TransactionStartTimestampMs", "type": "int64", "versions": "0+"},
            {"name": "ClientTransactionVersion", "type": "int16", "tag": 2, "default": 0, **TAGGED},
        ],
    }
)

OFFSET = declared(
    {
        "name": "OffsetCommitValue",
        "validVersions": "3-4",
        "flexibleVersions": "4+",
        "fields": [
            {"name": "Offset", "type": "int64", "versions": "3+"},
            {"name": "LeaderEpoch", "type": "int32", "versions": "3+"},
            {"name": "Metadata", "type": "string", "versions": "3+"},
            {"name": "CommitTimestamp", "type": "int64", "versions": "3+"},
            {"name": "TopicId", "type": "uuid", "versions": "4+", "taggedVersions": "4+", "tag": 0},
        ],
    }
)

ABORTED = struct.Struct(">hqqqq")
PRODUCER = struct.Struct(">qhiqiqiq")
SNAPSHOT_HEAD = 2 + 4 + 4
"""A version, a CRC and a count."""


def log_of(directory: Path) -> bytes:
    """Returns all segments of a partition."""
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size


def partitions(data: Path, topic: str) -> list[Path]:
    return sorted(data.glob(f"{topic}-*"))


def transactions(data: Path, prefix: str) -> dict[str, list[Any]]:
    """Returns all records of each transactional id of a scenario, in order."""
    found: dict[str, list[Any]] = {}
    for directory in partitions(data, "__transaction_state"):
        for key, value in contents(log_of(directory)):
            assert key is not None
            transactional_id, _ = text(key, 2)
            if transactional_id.startswith(prefix):
                assert struct.unpack_from(">h", key) == (TRANSACTION_KEY,)
                found.setdefault(transactional_id.replace(prefix, "~"), []).append(versioned(VALUE, value))
    return found


def versioned(schema: Any, value: bytes | None) -> Any:
    if value is None:
        return None
    (version,) = struct.unpack_from(">h", value)
    found = decode(schema, value[2:], version)
    for each in found.get("TransactionPartitions") or ():
        each["PartitionIds"].sort()  # sets in Apache Kafka
    if found.get("TransactionPartitions"):
        found["TransactionPartitions"].sort(key=lambda each: each["Topic"])
    return {"version": version, **found}


def offsets(data: Path, prefix: str) -> dict[str, list[Any]]:
    """Returns a scenario's records in each partition of ``__consumer_offsets``: commits, and its producers' markers."""
    found: dict[str, list[Any]] = {}
    for directory in partitions(data, "__consumer_offsets"):
        log = log_of(directory)
        mine: set[int] = set()
        for each in parse(log) if prefix.encode() in log else ():
            producer = each["ProducerId"]
            if prefix.encode().hex() in each["records"]:
                mine.add(producer)
                each["records"] = [commit(*record) for record in contents_of(each)]
            elif producer not in mine or producer < 0:
                continue
            found.setdefault(directory.name, []).append(
                {name: value for name, value in each.items() if name != "base_offset"}  # other scenarios commit as well
            )
    return found


def commit(key: bytes | None, value: bytes | None) -> Any:
    """Returns group, topic, partition, and the commit. Scenarios write no other records of groups."""
    assert key is not None
    (kind,) = struct.unpack_from(">h", key)
    assert kind == OFFSET_KEY, f"a record of type {kind}"
    group, at = text(key, 2)
    topic, at = text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    return [group, topic, partition, value and versioned(OFFSET, value)]


def partition_files(directory: Path) -> dict[str, Any]:
    """Returns a partition's files: batches, aborted transactions, producer states; of indexes only their existence.

    The leader epoch checkpoint is left out: Apache Kafka has an entry for an empty log as well.
    """
    readers = {".log": parse, ".txnindex": aborted, ".snapshot": producers}
    return {
        path.name: readers.get(path.suffix, lambda _: "is there")(path.read_bytes())
        for path in sorted(directory.iterdir())
        if path.name != "leader-epoch-checkpoint"
    }


def aborted(data: bytes) -> Any:
    names = ("version", "ProducerId", "first_offset", "last_offset", "last_stable_offset")
    return [dict(zip(names, each, strict=True)) for each in ABORTED.iter_unpack(data)]


def producers(data: bytes) -> Any:
    names = ("ProducerId", "epoch", "last_sequence", "last_offset", "offset_delta", "LastTimestamp")
    names += ("coordinator_epoch", "first_offset_of_transaction")
    entries = [dict(zip(names, each, strict=True)) for each in PRODUCER.iter_unpack(data[SNAPSHOT_HEAD:])]
    return sorted(entries, key=lambda each: int(each["ProducerId"]))
