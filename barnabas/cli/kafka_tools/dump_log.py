"""``kafka-dump-log``: prints the contents of log segments, indexes and snapshots.

Knows nothing of the layout of files. The lines are those of DumpLogSegments; JSON is that of Kafka's JsonConverter.
"""

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from barnabas.cli.dumping import beside, logs
from barnabas.cli.dumping.rows import Row, Source
from barnabas.cli.kafka_tools.options import FLAG, VALUE, Given, Option, Takes, UsageProblem, require
from barnabas.cli.kafka_tools.tool import Tool, call
from barnabas.errors import MalformedMessage
from barnabas.uuids import uuid_text
from barnabas.wire.coordinator_records import CoordinatorKey, decode_value
from barnabas.wire.messages import group_records, share_records, transaction_records
from barnabas.wire.messages.metadata_records import decode_metadata_record
from barnabas.wire.schema import Field, Struct
from barnabas.wire.types import Buffer, Fixed, read_uvarint

ABOUT: Final = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment."
)
UNSUPPORTED: Final = {
    "index-sanity-check": "barnabas check-log checks indexes",
    "verify-index-only": "barnabas check-log checks indexes",
    "key-decoder-class": "a Java class cannot be loaded",
    "value-decoder-class": "a Java class cannot be loaded",
    "remote-log-metadata-decoder": "there is no tiered storage",
}
OPTIONS: Final[Mapping[str, Option]] = {
    "files": VALUE,
    "print-data-log": FLAG,
    "deep-iteration": FLAG,
    "skip-record-metadata": FLAG,
    "max-bytes": VALUE,
    "max-message-size": VALUE,
    "offsets-decoder": FLAG,
    "transaction-log-decoder": FLAG,
    "cluster-metadata-decoder": FLAG,
    "share-group-state-decoder": FLAG,
    "index-sanity-check": FLAG,
    "verify-index-only": FLAG,
    "remote-log-metadata-decoder": FLAG,
    "key-decoder-class": Option(Takes.MAYBE),
    "value-decoder-class": Option(Takes.MAYBE),
    "help": FLAG,
    "version": FLAG,
}
LARGEST: Final = 2**31 - 1
_STEMS: Final = {".log": re.compile(r"\d+"), ".checkpoint": re.compile(r"bootstrap|\d+-\d+")}
"""The names of files that begin with an offset."""
PREFIXES: Final = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
"""The message classes of control records, for their JSON; other control records are transaction markers."""

Texts = tuple[str | None, str | None]
"""A record's key and value, as they are printed."""
Decode = Callable[[Buffer | None, Buffer | None], Texts]


def dump_log(arguments: Sequence[str]) -> int:
    """``kafka-dump-log``."""
    return call(Tool(ABOUT, OPTIONS, _run), arguments)


def _run(given: Given) -> int:
    require(given, "files")
    for name, reason in UNSUPPORTED.items():
        if name in given:
            raise UsageProblem(f"--{name} is not supported: {reason}.")
    if not given.one("max-bytes", "0").isdecimal():
        raise UsageProblem(f"Cannot parse argument '{given.one('max-bytes')}' of option max-bytes")
    for name in given.one("files").split(","):
        sys.stdout.write(f"Dumping {name}\n")
        path = Path(name)
        show = _SHOWS.get(path.suffix)
        if show is None:
            sys.stderr.write(f"Ignoring unknown file {name}\n")
            continue
        if path.suffix in _STEMS and not _STEMS[path.suffix].fullmatch(path.stem):
            sys.stderr.write(f"{name} has no offset in its name\n")
            return 1
        try:
            with Source(path) as source:
                for line in show(source, given):
                    sys.stdout.write(f"{line}\n")
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


# ---------------------------------------------------------------- logs


def _log(source: Source, given: Given) -> Iterator[str]:
    yield f"Log starting offset: {int(source.path.stem)}"
    yield from _batches(source, given)


def _snapshot(source: Source, given: Given) -> Iterator[str]:
    if source.path.stem == "bootstrap":
        yield "KRaft bootstrap snapshot"
    else:
        offset, _, epoch = source.path.stem.partition("-")
        yield f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"
    yield from _batches(source, given)


def _batches(source: Source, given: Given) -> Iterator[str]:
    decode = next((decode for name, decode in _DECODERS.items() if name in given), None)
    has_data = decode is not None or "print-data-log" in given
    max_bytes = int(given.one("max-bytes") or LARGEST)
    options = logs.Options(has_data or "deep-iteration" in given, print_data=True, max_bytes=max_bytes)
    batch: Row | None = None
    offsets = []
    for row in logs.rows(source, options):
        if row.kind == "record":
            assert batch is not None
            offsets.append(row.fields["offset"])
            yield _record(row.fields, batch.fields, given, (decode or _as_text) if has_data else None)
        elif row.kind == "zeros":
            yield f"Found {row.fields['size']} invalid bytes at the end of {source.path.name}"
        elif row.is_damage:
            yield f"Found invalid bytes at {row.fields.get('position')} of {source.path.name}: {row.fields['what']}"
        elif row.fields["position"] + row.fields["size"] > max_bytes:
            break
        else:
            batch = row
            yield _batch(row.fields)
    _tell_gaps(source.path, offsets)


def _tell_gaps(path: Path, offsets: Sequence[int]) -> None:
    gaps = [(one, other) for one, other in pairwise(offsets) if other != one + 1]
    if gaps:
        lines = [f"Non-consecutive offsets in {path.absolute()}"]
        lines += [f"  {one} is followed by {other}" for one, other in gaps]
        sys.stderr.write("\n".join(lines) + "\n")


def _batch(fields: Mapping[str, Any]) -> str:
    words = {"offset": fields["last_offset"]}
    if fields["magic"] >= 2:
        words = {
            "baseOffset": fields["base_offset"],
            "lastOffset": fields["last_offset"],
            "count": fields["count"],
            "baseSequence": fields["base_sequence"],
            "lastSequence": fields["last_sequence"],
            "producerId": fields["producer_id"],
            "producerEpoch": fields["producer_epoch"],
            "partitionLeaderEpoch": fields["partition_leader_epoch"],
            "isTransactional": fields["is_transactional"],
            "isControl": fields["is_control"],
            "deleteHorizonMs": _optional(fields["delete_horizon_ms"]),
        }
    words |= {
        "position": fields["position"],
        fields["timestamp_type"]: fields["max_timestamp"],
        "size": fields["size"],
        "magic": fields["magic"],
        "compresscodec": fields["codec"],
        "crc": fields["crc"],
        "isvalid": fields["crc_ok"],
    }
    return _line(words)


def _record(fields: Mapping[str, Any], batch: Mapping[str, Any], given: Given, decode: Decode | None) -> str:
    is_short = "skip-record-metadata" in given
    words: list[str] = []
    if not is_short:
        words.append(
            _line({
                "offset": fields["offset"], batch["timestamp_type"]: fields["timestamp"],
                "keySize": fields["key_size"], "valueSize": fields["value_size"],
            })
        )  # fmt: skip
        if batch["magic"] >= 2:
            names = ",".join(name.decode(errors="replace") for name, _ in fields.get("headers", ()))
            words.append(f"sequence: {fields['sequence']} headerKeys: [{names}]")
        else:
            words.append(_line({"isValid": fields["crc_ok"], "crc": fields["crc"]}))
    if batch.get("is_control"):
        if is_short:
            return ""
        words.append(_control(fields))
    elif decode is not None:
        key, value = decode(fields["key"], fields["value"])
        words += [f"{name}: {text}" for name, text in (("key", key), ("payload", value)) if text is not None]
    return "| " + " ".join(words)


def _control(fields: Mapping[str, Any]) -> str:
    kind = fields["control_type"]
    if kind in PREFIXES:
        past = list(fields).index("control_type") + 1
        content = {name: fields[name] for name in list(fields)[past:] if name != "headers"}
        return f"{PREFIXES[kind]} {_json(_camel_names(content))}"
    if "coordinator_epoch" in fields:
        return f"endTxnMarker: {kind} coordinatorEpoch: {fields['coordinator_epoch']}"
    return f"controlType: UNKNOWN({kind})"


# ---------------------------------------------------------------- keys and values


def _as_text(key: Buffer | None, value: Buffer | None) -> Texts:
    found = [None if each is None else bytes(each).decode(errors="replace") for each in (key, value)]
    return found[0], found[1]


def _coordinator(read_key: Callable[[Buffer], CoordinatorKey | None]) -> Decode:
    """Returns the decoder of the records of a coordinator's topic."""

    def decode(data: Buffer | None, value: Buffer | None) -> Texts:
        if data is None:
            raise UsageProblem("Failed to decode message using the specified decoder (message had a missing key)")
        try:
            key = read_key(data)
            if key is None:
                return _unknown(data), None
            text = _json({"type": str(key.record_type), "data": as_json(key, 0)})
            if value is None:
                return text, "<DELETE>"
            version = int.from_bytes(value[:2], signed=True)
            return text, _json({"version": str(version), "data": as_json(decode_value(key, value), version)})
        except MalformedMessage as error:
            return str(error), None

    return decode


def _unknown(key: Buffer) -> str:
    return f"Unknown record type {int.from_bytes(key[:2], signed=True)}, skipping"


def _transaction(data: Buffer | None, value: Buffer | None) -> Texts:
    if data is None:
        raise UsageProblem("Failed to decode message using the specified decoder (message had a missing key)")
    try:
        name = transaction_records.decode_key(data)
        if name is None:
            return _unknown(data), None
        text = _json({"type": str(transaction_records.KEY_TYPE), "data": {"transactionalId": name}})
        if value is None:
            return text, "<DELETE>"
        version = int.from_bytes(value[:2], signed=True)
        content = as_json(transaction_records.decode_value(value), version)
        return text, _json({"version": str(version), "data": content})
    except MalformedMessage as error:
        return str(error), None


def _metadata(key: Buffer | None, value: Buffer | None) -> Texts:
    try:
        record = decode_metadata_record(value or b"")
    except MalformedMessage as error:
        return None, f"Error: {error}"
    _, at = read_uvarint(value or b"", 0)
    _, at = read_uvarint(value or b"", at)
    version, _ = read_uvarint(value or b"", at)
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(record).__name__).upper()
    return None, _json({"type": kind, "version": version, "data": as_json(record, version)})


_DECODERS: Final[dict[str, Decode]] = {
    "offsets-decoder": _coordinator(group_records.decode_key),
    "transaction-log-decoder": _transaction,
    "cluster-metadata-decoder": _metadata,
    "share-group-state-decoder": _coordinator(share_records.decode_key),
}


def as_json(structure: Struct, version: int) -> dict[str, Any]:
    """Returns a message as Kafka's JsonConverter writes it: without the tagged fields that have their default."""
    return {
        _camel(field.name): _plain(field, getattr(structure, field.name), version)
        for field in structure.wire_fields()
        if version in field.versions and (field.tag is None or getattr(structure, field.name) != field.default)
    }


def _plain(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        single = field._replace(is_array=False)
        return [_plain(single, each, version) for each in value]
    if isinstance(value, Struct):
        return as_json(value, version)
    if isinstance(field.kind, Fixed) and field.kind.format == "16s":
        return uuid_text(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes | memoryview) else value


# ---------------------------------------------------------------- indexes and snapshots of producers


def _index(source: Source, given: Given) -> Iterator[str]:
    if not source.size:
        yield f"{source.path} is empty."
    for row in beside.offset_index(source):
        if row.kind == "index-entry":
            yield _line({"offset": row.fields["offset"], "position": row.fields["log_position"]})


def _time_index(source: Source, given: Given) -> Iterator[str]:
    for row in beside.time_index(source):
        if row.kind == "timeindex-entry":
            yield _line({"timestamp": row.fields["timestamp"], "offset": row.fields["offset"]})


def _transaction_index(source: Source, given: Given) -> Iterator[str]:
    for row in beside.transaction_index(source):
        names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
        if not row.is_damage:
            yield _line({_camel(name): row.fields[name] for name in names})


def _producers(source: Source, given: Given) -> Iterator[str]:
    for row in beside.producer_snapshot(source):
        if row.kind == "producer":
            yield _producer(row.fields)


def _producer(fields: Mapping[str, Any]) -> str:
    first = fields["current_txn_first_offset"]
    words = {
        "producerId": fields["producer_id"],
        "producerEpoch": fields["producer_epoch"],
        "coordinatorEpoch": fields["coordinator_epoch"],
        "currentTxnFirstOffset": _optional(None if first < 0 else first),
        "lastTimestamp": fields["timestamp"],
    }
    if fields["last_sequence"] >= 0:
        words |= {
            "firstSequence": fields["last_sequence"] - fields["offset_delta"],
            "lastSequence": fields["last_sequence"],
            "lastOffset": fields["last_offset"],
            "offsetDelta": fields["offset_delta"],
            "timestamp": fields["timestamp"],
        }
    return _line(words)


_SHOWS: Final[dict[str, Callable[[Source, Given], Iterator[str]]]] = {
    ".log": _log,
    ".checkpoint": _snapshot,
    ".index": _index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _producers,
}


# ---------------------------------------------------------------- words


def _line(words: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}: {str(value).lower() if isinstance(value, bool) else value}" for name, value in words.items()
    )


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _camel_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel(name): _camel_names(each) for name, each in value.items() if each is not None}
    return [_camel_names(each) for each in value] if isinstance(value, list) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
