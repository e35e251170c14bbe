"""The rows of all files but logs: indexes, producer snapshots, checkpoints, properties and JSON files.

Knows nothing of the logs; ``check-log`` compares the files with them.
"""

import json
from collections.abc import Iterator
from typing import Any

import crc32c
from construct import Construct

from barnabas.cli.dumping.rows import Row, Source, damage
from barnabas.cli.layouts import indexes as layouts
from barnabas.cli.layouts.control import plain

_PIECE = 1 << 10  # entries
_PADDED = 1 << 10  # bytes


def entries(source: Source, layout: Construct) -> Iterator[tuple[int, Any]]:
    """Yields the entries of an index with their positions."""
    size = layout.sizeof()
    for start in range(0, source.size - source.size % size, size * _PIECE):
        piece = source.read(size * _PIECE, start)
        for at in range(0, len(piece) - size + 1, size):
            yield start + at, layout.parse(piece[at : at + size])


def is_padding(source: Source, position: int) -> bool:
    """Returns whether only zeros follow, as in an index that Apache Kafka has preallocated and not closed."""
    return source.size - position > _PADDED and not any(source.read(source.size - position, position))


def _rest(source: Source, layout: Construct) -> Iterator[Row]:
    rest = source.size % layout.sizeof()
    if rest:
        yield damage(source.size - rest, f"{rest} bytes are left, but an entry has {layout.sizeof()}")


def _base_offset(source: Source) -> int:
    stem = source.path.name.partition(".")[0]
    return int(stem) if stem.isdecimal() else 0


def offset_index(source: Source) -> Iterator[Row]:
    """Yields the rows of an ``.index``: the last offset of a batch, and the batch's position."""
    base, before = _base_offset(source), None
    for position, entry in entries(source, layouts.OFFSET_ENTRY):
        if not (entry.relative_offset or entry.position) and is_padding(source, position):
            yield Row("zeros", {"position": position, "size": source.size - position})
            return
        offset = base + entry.relative_offset
        yield Row("index-entry", {"offset": offset, "log_position": entry.position, "position": position})
        if entry.relative_offset < 0 or (before and (offset <= before[0] or entry.position <= before[1])):
            yield damage(position, f"offset {offset} at {entry.position} does not follow the entry before it")
        before = offset, entry.position
    yield from _rest(source, layouts.OFFSET_ENTRY)


def time_index(source: Source) -> Iterator[Row]:
    """Yields the rows of a ``.timeindex``: the maximum timestamp up to an offset."""
    base, before = _base_offset(source), None
    for position, entry in entries(source, layouts.TIME_ENTRY):
        if not (entry.relative_offset or entry.timestamp) and is_padding(source, position):
            yield Row("zeros", {"position": position, "size": source.size - position})
            return
        offset = base + entry.relative_offset
        yield Row("timeindex-entry", {"timestamp": entry.timestamp, "offset": offset, "position": position})
        if entry.relative_offset < 0 or (before and (entry.timestamp <= before[0] or offset < before[1])):
            yield damage(position, f"timestamp {entry.timestamp} up to {offset} does not follow the entry before it")
        before = entry.timestamp, offset
    yield from _rest(source, layouts.TIME_ENTRY)


def transaction_index(source: Source) -> Iterator[Row]:
    """Yields the rows of a ``.txnindex``: the aborted transactions whose marker is in this segment."""
    for position, entry in entries(source, layouts.ABORTED_TRANSACTION):
        fields = plain(entry)
        version = fields.pop("version")
        yield Row("aborted-transaction", {**fields, "version": version, "position": position})
        if version != layouts.ABORTED_TRANSACTION_VERSION:
            yield damage(position, f"the entry's version is {version}, not {layouts.ABORTED_TRANSACTION_VERSION}")
    yield from _rest(source, layouts.ABORTED_TRANSACTION)


def producer_snapshot(source: Source) -> Iterator[Row]:
    """Yields the rows of a ``.snapshot``: the producer states at the offset in its name."""
    data, size = source.all(), layouts.SNAPSHOT.sizeof()
    if len(data) < size:
        yield damage(0, f"{len(data)} bytes are too few for a producer snapshot")
        return
    head = layouts.SNAPSHOT.parse(data)
    crc = crc32c.crc32c(data[layouts.SNAPSHOT_CHECKED_FROM :])
    fields = {"offset": _base_offset(source), **plain(head)}
    yield Row("producer-snapshot", {**fields, "crc_ok": crc == head.crc})
    if head.version != layouts.SNAPSHOT_VERSION:
        yield damage(0, f"the version is {head.version}, not {layouts.SNAPSHOT_VERSION}")
    if crc != head.crc:
        yield damage(2, f"the CRC is {head.crc}, but that of the bytes is {crc}")
    each = layouts.PRODUCER.sizeof()
    if head.count * each != len(data) - size:
        yield damage(6, f"{head.count} producers do not take {len(data) - size} bytes")
    for position in range(size, len(data) - each + 1, each):
        yield Row("producer", {**plain(layouts.PRODUCER.parse(data[position:])), "position": position}, depth=1)


# ---------------------------------------------------------------- text

PARTITION_OFFSETS, EPOCHS = ("topic", "partition", "offset"), ("epoch", "start_offset")


def checkpoint(source: Source, columns: tuple[str, ...]) -> Iterator[Row]:
    """Yields the rows of a checkpoint: a version, a count, and the lines."""
    text = source.all().decode("utf-8", "replace")
    lines = text.split("\n")
    if not text:
        yield Row("checkpoint", {"version": None, "count": 0})
        return
    try:
        version, count = int(lines[0]), int(lines[1])
    except (ValueError, IndexError):
        yield damage(0, "the version or the count is missing")
        return
    yield Row("checkpoint", {"version": version, "count": count})
    if version != 0:
        yield damage(0, f"the version is {version}, not 0")
    position, found = len(lines[0]) + len(lines[1]) + 2, 0
    for line in lines[2:]:
        words = line.split(" ")
        if line and (len(words) != len(columns) or not all(map(_is_number, words[-2:]))):
            yield damage(position, f"{line!r} is not {', '.join(columns)}")
        elif line:
            named = dict(zip(columns, words, strict=True))
            yield Row(
                "checkpoint-entry", {name: int(v) if name != "topic" else v for name, v in named.items()}, depth=1
            )
        found += bool(line)
        position += len(line.encode()) + 1
    if found != count:
        yield damage(len(lines[0]) + 1, f"{count} entries in its header, but it has {found} are there")


def _is_number(word: str) -> bool:
    return word.isascii() and word.removeprefix("-").isdigit()


def properties(source: Source) -> Iterator[Row]:
    """Yields the rows of ``meta.properties`` or ``partition.metadata``: a name and a value per line."""
    position, fields = 0, {}
    for line in source.all().decode("latin-1").split("\n"):
        at, position = position, position + len(line) + 1
        if not line.strip() or line.startswith(("#", "!")):
            continue
        name, mark, value = line.partition(":" if source.path.name == "partition.metadata" else "=")
        if not mark:
            yield damage(at, f"{line!r} has no name and value")
            continue
        fields[name.strip().replace(".", "_")] = value.strip()
    yield Row("properties", fields)


def json_file(source: Source) -> Iterator[Row]:
    """Yields the row of ``quorum-state`` or ``.kafka_cleanshutdown``: a JSON object, or nothing."""
    data = source.all()
    try:
        found = json.loads(data) if data else {}
    except ValueError as error:
        yield damage(getattr(error, "pos", 0), f"it is not JSON: {error}")
        return
    if not isinstance(found, dict):
        yield damage(0, "it is not a JSON object")
        return
    yield Row(source.path.name.removeprefix(".kafka_"), found)
