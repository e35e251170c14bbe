"""The rows of a ``.log`` file or a metadata snapshot: batches, and the records in them.

Knows nothing of other files. The decodable part of a damaged batch is printed. Printing ends at an invalid length.
"""

import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

import crc32c
from construct import ConstructError

from barnabas.cli.dumping.codecs import CannotUnpack, unpack
from barnabas.cli.dumping.rows import Row, Source, damage
from barnabas.cli.dumping.secrets import without_secrets
from barnabas.cli.layouts import batches as layouts
from barnabas.cli.layouts import control
from barnabas.cli.layouts.coordinators import DECODERS, NotSuchARecord

RECORD = "record"


class Options(NamedTuple):
    """The options that select the printed part of a log."""

    deep: bool = False  #: whether records are printed, too
    print_data: bool = False  #: whether keys, values and headers of the records are printed
    decoder: str | None = None  #: a key of DECODERS
    max_messages: int | None = None
    max_bytes: int | None = None
    show_secrets: bool = False  #: whether secrets in metadata records are printed


def rows(source: Source, options: Options) -> Iterator[Row]:
    """Yields the rows of the file, up to its end or to a batch whose length is invalid."""
    position, left = 0, options.max_messages
    end = source.size if options.max_bytes is None else min(source.size, options.max_bytes)
    while position < end and (left is None or left > 0):
        head = source.read(17, position)
        size, problem = _size(head, source.size - position)
        if problem is not None:
            if not any(head) and _is_zero(source, position):
                yield Row("zeros", {"position": position, "size": source.size - position})
            else:
                offset = {"offset": int.from_bytes(head[:8], signed=True)} if len(head) >= 8 else {}
                yield damage(position, problem, **offset)
            return
        data = source.read(size, position)
        found = _batch(data, position, options) if head[16] == 2 else _message(data, position, options)
        for row in found:
            yield row
            if left is not None and row.kind in (RECORD, "batch", "message"):
                counted = row.kind == RECORD if options.deep else row.kind != RECORD
                left -= (1 if options.deep else row.fields.get("count") or 1) if counted else 0
                if left <= 0 and options.deep:
                    return
        position += size


def _size(head: bytes, there: int) -> tuple[int, str | None]:
    """Returns the length of the batch with this header, and why it is invalid, or None."""
    if len(head) < 17:
        return 0, f"{len(head)} bytes are left, too few for a batch"
    prefix = layouts.PREFIX.parse(head)
    size = layouts.OVERHEAD + prefix.length
    if prefix.magic not in layouts.MIN_LENGTHS:
        return 0, f"the magic byte is {prefix.magic}, not 0, 1 or 2; what follows cannot be read"
    if prefix.length < layouts.MIN_LENGTHS[prefix.magic]:
        return 0, f"the length is {prefix.length}, less than a header; what follows cannot be read"
    if size > there:
        return 0, f"{there} bytes are left of a batch of {size}"
    return size, None


def _is_zero(source: Source, position: int) -> bool:
    while piece := source.read(1 << 20, position):
        if any(piece):
            return False
        position += len(piece)
    return True


# ---------------------------------------------------------------- magic 2


def _batch(data: bytes, position: int, options: Options) -> Iterator[Row]:
    head = layouts.BATCH.parse(data)
    attributes = head.attributes
    crc = crc32c.crc32c(data[layouts.BATCH_CHECKED_FROM :])
    codec = layouts.CODECS[attributes.codec] if attributes.codec < len(layouts.CODECS) else str(attributes.codec)
    yield Row(
        "batch",
        {
            "position": position,
            "size": len(data),
            "base_offset": head.base_offset,
            "last_offset": head.base_offset + head.last_offset_delta,
            "count": head.count,
            "partition_leader_epoch": head.partition_leader_epoch,
            "magic": head.magic,
            "codec": codec,
            "timestamp_type": "LogAppendTime" if attributes.is_log_append_time else "CreateTime",
            "base_timestamp": head.base_timestamp,
            "max_timestamp": head.max_timestamp,
            "producer_id": head.producer_id,
            "producer_epoch": head.producer_epoch,
            "base_sequence": head.base_sequence,
            "last_sequence": _sequence(head, head.last_offset_delta),
            "is_transactional": attributes.is_transactional,
            "is_control": attributes.is_control,
            "delete_horizon_ms": head.base_timestamp if attributes.has_delete_horizon else None,
            "crc": head.crc,
            "crc_ok": crc == head.crc,
        },
    )
    if crc != head.crc:
        yield damage(position, f"the CRC is {head.crc}, but that of the bytes is {crc}", offset=head.base_offset)
    if head.last_offset_delta < 0 or head.count < 0:
        yield damage(position, f"{head.count} records up to offset +{head.last_offset_delta}", offset=head.base_offset)
    elif options.deep:
        yield from _records(data, head, codec, position, options)


def _sequence(head: Any, delta: int) -> int:
    """Returns the sequence of a record, -1 for none; 0 follows 2**31 - 1."""
    return -1 if head.base_sequence < 0 else head.base_sequence + delta & 0x7FFFFFFF


def _records(data: bytes, head: Any, codec: str, position: int, options: Options) -> Iterator[Row]:
    try:
        body = BytesIO(unpack(codec, data[layouts.BATCH.sizeof() :]))
    except (CannotUnpack, KeyError) as error:
        yield damage(position, str(error) if isinstance(error, CannotUnpack) else f"there is no codec {codec}")
        return
    for number in range(head.count):
        try:
            record = layouts.RECORD.parse_stream(body)
        except (ConstructError, OverflowError, MemoryError) as error:
            words = f"record {number} of {head.count} cannot be read: {' '.join(str(error).split())}"
            yield damage(position, words, offset=head.base_offset)
            return
        is_append_time = head.attributes.is_log_append_time
        fields = {
            "offset": head.base_offset + record.offset_delta,
            "timestamp": head.max_timestamp if is_append_time else head.base_timestamp + record.timestamp_delta,
            "sequence": -1 if head.attributes.is_control else _sequence(head, record.offset_delta),
        }
        yield from _record(fields, record, head.attributes.is_control, position, options)
    rest = len(body.read())
    if rest:
        yield damage(position, f"{rest} bytes are left behind the last record", offset=head.base_offset)


def _record(fields: dict[str, Any], record: Any, is_control: bool, position: int, options: Options) -> Iterator[Row]:
    key, value = record.key, record.value
    fields["key_size"] = -1 if key is None else len(key)
    fields["value_size"] = -1 if value is None else len(value)
    problem = None
    if is_control:
        try:
            fields |= _control(key, value)
        except (NotSuchARecord, ConstructError) as error:
            problem = f"not a control record: {' '.join(str(error).split())}"
    elif options.decoder is not None:
        try:
            fields["key"], fields["value"] = DECODERS[options.decoder](key, value)
            if options.decoder == "metadata" and not options.show_secrets:
                fields["value"] = without_secrets(fields["value"])
        except NotSuchARecord as error:
            problem, fields["key"], fields["value"] = f"not a record of {options.decoder}: {error}", key, value
    elif options.print_data:
        fields["key"], fields["value"] = key, value
    if options.print_data and not is_control:
        fields["headers"] = [[header.key or b"", header.value] for header in record.headers]
    yield Row(RECORD, fields, depth=1)
    if problem is not None:
        yield damage(position, problem, offset=fields["offset"])


def _control(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    if key is None or len(key) < control.KEY.sizeof():
        raise NotSuchARecord("its key is too short")
    kind = control.KEY.parse(key).type
    if kind not in control.TYPES:
        return {"control_type": kind, "value": value}
    name, layout = control.TYPES[kind]
    return {"control_type": name, **control.plain(layout.parse(value or b""))}


# ---------------------------------------------------------------- magic 0 and 1


def _message(data: bytes, position: int, options: Options) -> Iterator[Row]:
    try:
        message = layouts.MESSAGE.parse(data)
    except ConstructError as error:
        yield damage(position, f"no message can be read: {' '.join(str(error).split())}")
        return
    yield Row("message", {"position": position, "size": len(data), **_facts(message, data)})
    if _crc(data) != message.crc:
        yield damage(
            position, f"the CRC is {message.crc}, but that of the bytes is {_crc(data)}", offset=message.offset
        )
    if not options.deep:
        return
    if not message.attributes.codec:
        yield _old_record(message, message.offset, message, _crc(data) == message.crc, options)
        return
    try:
        yield from _inner(message, position, options)
    except (CannotUnpack, ConstructError, IndexError) as error:
        yield damage(position, " ".join(str(error).split()), offset=message.offset)


def _inner(wrapper: Any, position: int, options: Options) -> Iterator[Row]:
    """Yields the messages in a compressed one. In magic 1 their offsets are relative, and the wrapper's is the last."""
    data = unpack(layouts.CODECS[wrapper.attributes.codec], wrapper.value or b"", wrapper.magic)
    inner: list[tuple[Any, bool]] = []
    at = 0
    while at < len(data):
        message = layouts.MESSAGE.parse(data[at:])
        size = layouts.OVERHEAD + message.length
        is_intact = _crc(data[at : at + size]) == message.crc
        if not is_intact:
            yield damage(position, f"the CRC of an inner message is {message.crc}, which is not that of its bytes")
        inner.append((message, is_intact))
        at += size
    base = wrapper.offset - inner[-1][0].offset if wrapper.magic and inner else 0
    for message, is_intact in inner:
        yield _old_record(message, base + message.offset, wrapper, is_intact, options)


def _crc(data: bytes) -> int:
    return zlib.crc32(data[layouts.MESSAGE_CHECKED_FROM :])


def _facts(message: Any, data: bytes) -> dict[str, Any]:
    codec = message.attributes.codec
    return {
        "last_offset": message.offset,
        "magic": message.magic,
        "codec": layouts.CODECS[codec] if codec < len(layouts.CODECS) else str(codec),
        "timestamp_type": _timestamp_type(message),
        "max_timestamp": -1 if message.timestamp is None else message.timestamp,
        "crc": message.crc,
        "crc_ok": _crc(data) == message.crc,
    }


def _timestamp_type(message: Any) -> str:
    if message.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if message.attributes.is_log_append_time else "CreateTime"


def _old_record(message: Any, offset: int, wrapper: Any, is_intact: bool, options: Options) -> Row:
    source = wrapper if wrapper.magic and wrapper.attributes.is_log_append_time else message
    fields = {
        "offset": offset,
        "timestamp": -1 if source.timestamp is None else source.timestamp,
        "key_size": -1 if message.key is None else len(message.key),
        "value_size": -1 if message.value is None else len(message.value),
        "crc": message.crc,
        "crc_ok": is_intact,
    }
    if options.print_data or options.decoder is not None:
        fields |= {"key": message.key, "value": message.value}
    return Row(RECORD, fields, depth=1)
