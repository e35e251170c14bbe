"""Snapshot files, encoded and decoded: their records replace a prefix of the metadata log.

Knows nothing of what the records mean, nor of when a snapshot is due. A file ``<end offset>-<epoch>.checkpoint`` in the
directory of the metadata log has a control batch with a header, batches of records and a control batch with a footer
(KIP-630). ``bootstrap.checkpoint``, which ``kafka-storage format`` writes beside that directory, has the same format.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from barnabas.cluster.quorum.record_batches import Control, control_batch, decode_batches, encode_batches
from barnabas.errors import CorruptMessage, KafkaError, MalformedMessage
from barnabas.records.control import ControlRecordType
from barnabas.wire.message import Message
from barnabas.wire.messages.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

SUFFIX = ".checkpoint"


class SnapshotId(NamedTuple):
    """The end offset of the snapshot, exclusive, and the epoch of its last record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


class KRaftState(NamedTuple):
    """The voters and the version of the quorum (KIP-853). With version 0 the voters are configured."""

    version: int = 0
    voters: VotersRecord | None = None


class Snapshot(NamedTuple):
    """The contents of a snapshot file."""

    records: list[Any]
    kraft: KRaftState
    timestamp: int  #: of the last record of the log that it includes


def parse_file_name(name: str) -> SnapshotId | None:
    """Returns the id in the name of a snapshot file; None for any other file."""
    offset, dash, epoch = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or not dash or not (offset.isdecimal() and epoch.isdecimal()):
        return None
    return SnapshotId(int(offset), int(epoch))


# ---------------------------------------------------------------- reading


def decode_snapshot(data: bytes) -> Snapshot:
    """Decodes a snapshot file.

    :raises CorruptMessage: the file is damaged or incomplete
    """
    records: list[Any] = []
    kraft = KRaftState()
    timestamp, is_whole, begun, size = -1, False, False, 0
    try:
        for batch, found in decode_batches(data):
            size += batch.size_in_bytes
            for record in found:
                if not isinstance(record, Control):
                    records.append(record)
                elif record.type == ControlRecordType.SNAPSHOT_HEADER:
                    header = SnapshotHeaderRecord.decode(record.value, version=0)
                    timestamp, begun = header.last_contained_log_timestamp, True
                elif record.type == ControlRecordType.SNAPSHOT_FOOTER:
                    is_whole = begun
                else:
                    kraft = after_control(kraft, record)
    except (MalformedMessage, KafkaError) as error:
        raise CorruptMessage(f"a snapshot with a damaged batch at byte {size}: {error}") from error
    if not is_whole:
        raise CorruptMessage("a snapshot without an end")
    return Snapshot(records, kraft, timestamp)


def after_control(kraft: KRaftState, record: Control) -> KRaftState:
    """Returns the state of the quorum after a control record. Only few types change it."""
    if record.type == ControlRecordType.KRAFT_VERSION:
        return kraft._replace(version=KRaftVersionRecord.decode(record.value, version=0).kraft_version)
    if record.type == ControlRecordType.KRAFT_VOTERS:
        return kraft._replace(voters=VotersRecord.decode(record.value, version=0))
    return kraft


# ---------------------------------------------------------------- writing


def control_records(kraft: KRaftState) -> list[tuple[ControlRecordType, Message, int]]:
    """Returns the state of the quorum as control records, each with the version to write; none for kraft.version 0."""
    if not kraft.version:
        return []
    raised = KRaftVersionRecord(version=0, kraft_version=kraft.version)
    records: list[tuple[ControlRecordType, Message, int]] = [(ControlRecordType.KRAFT_VERSION, raised, 0)]
    if kraft.voters is not None:
        records.append((ControlRecordType.KRAFT_VOTERS, kraft.voters, 0))
    return records


def encode_snapshot(
    records: Iterable[Any], *, kraft: KRaftState, metadata_version: int, epoch: int, last_timestamp: int, now_ms: int
) -> bytes:
    """Returns the bytes of the snapshot file with these records."""
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    head: list[tuple[ControlRecordType, Message, int]] = [(ControlRecordType.SNAPSHOT_HEADER, header, 0)]
    head += control_records(kraft)
    parts: list[bytearray] = [control_batch(head, timestamp=now_ms, epoch=epoch)]
    listed = list(records)
    parts += [
        batch.data
        for batch in encode_batches(
            listed, metadata_version=metadata_version, timestamp=now_ms, epoch=epoch, base_offset=len(head)
        )
    ]
    footer = [(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0), 0)]
    parts.append(control_batch(footer, timestamp=now_ms, epoch=epoch, base_offset=len(head) + len(listed)))
    return b"".join(parts)
