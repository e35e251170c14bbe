"""Validates a producer's batch before the leader appends it, and corrects its header.

Knows nothing of logs, requests and responses, nor of sequences and epochs, which the log checks.

The rules are those of Apache Kafka's ``ProduceRequest.validateRecords``, ``UnifiedLog.analyzeAndValidateRecords`` and
``LogValidator``, in their order, and were compared with Apache Kafka 4.3.1 case by case. There is one difference:
Apache Kafka walks over the records of each batch, this module only over those of small batches, and of others if a
config of the topic requires it (docs/decisions/0003-batches-are-walked-when-small.md).
"""

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnknownServerError,
    UnsupportedCompressionType,
)
from barnabas.integers import MAX_LONG, MIN_LONG
from barnabas.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    Buffer,
    Compression,
    RecordBatch,
)
from barnabas.records.record import (
    RECORD_MIN_SIZE,
    body_of,
    first_timestamp_delta,
    records_in,
    walk,
)

if TYPE_CHECKING:
    from barnabas.config.topic import TopicConfig

SMALL_COUNT: Final = 32  # a batch is small, and walked over, if it has at most this many records,
SMALL_SIZE: Final = 16 << 10  # this many bytes as it was sent,
SMALL_UNPACKED: Final = 1 << 20  # and this many bytes decompressed
UNPACKED_PER_MESSAGE_BYTE: Final = 16  # times max.message.bytes, the limit for batches that must be decompressed
PLAUSIBLE_RATIO: Final = 64  # a batch is walked over if the minimum size of its records is more than this times larger
Place = tuple[str, int]
NOWHERE: Final = ("", 0)
NAMED_ERRORS: Final = 1000  # the maximum number of refused records in a response

_ZSTD = int(Compression.ZSTD)  # looking up an enumeration's member takes longer than the comparison
_MIN_LENGTH = 14  # the length of the shortest message, of format v0
_INT32_AT_8 = Struct(">8xi")


class NotOneBatch(InvalidRecord):
    """The records of a partition are not exactly one record batch of format v2."""


class UnknownCodec(UnknownServerError):
    """The codec of a batch is unknown, and the version of Produce checks codecs before it looks up the log."""


class NoMessage(CorruptMessage):
    """The bytes do not start like a message of any format: the one corruption that Apache Kafka gives a text for."""


class ProducePolicy(NamedTuple):
    """The configs of a topic that concern its batches, in bytes and milliseconds; the defaults are Apache Kafka's."""

    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1 << 30
    log_append_time: bool = False
    timestamp_before_max_ms: int = MAX_LONG
    timestamp_after_max_ms: int = 3_600_000
    compression: Compression | None = None  #: None: the producer's own
    compression_level: int | None = None
    compacted: bool = False
    checks_values: bool = False  #: whether values have to name a schema of the topic

    @classmethod
    def of(cls, config: "TopicConfig") -> "ProducePolicy":
        name = config.compression_type
        codec = None if name == "producer" else _CODECS_BY_NAME[name]
        levels = {
            Compression.GZIP: config.compression_gzip_level,
            Compression.LZ4: config.compression_lz4_level,
            Compression.ZSTD: config.compression_zstd_level,
        }
        return cls(
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            compression=codec,
            compression_level=None if codec is None else levels.get(codec),
            compacted="compact" in config.cleanup_policy,
            checks_values=config.barnabas_value_schema_validation,
        )


_CODECS_BY_NAME = {"uncompressed": Compression.NONE, **{codec.name.lower(): codec for codec in Compression if codec}}


def validate_produced(
    data: Buffer, policy: ProducePolicy, now_ms: int, where: Place = NOWHERE, *, allows_zstd: bool = True
) -> RecordBatch:
    """Returns the batch in ``data``, ready to be stamped and appended.

    It is a view of ``data``, which must be writable because a max timestamp or the append time may be written there,
    unless the topic has another codec.

    :param where: topic and partition, for the texts of errors
    :param allows_zstd: False if the version of Produce is too low for zstd (KIP-110)
    :raises KafkaError: the error for the Produce response, with the refused records in ``record_errors``. The first
        checks raise :class:`NotOneBatch`, CorruptMessage, UnsupportedCompressionType or :class:`UnknownCodec`
    """
    try:
        batch = RecordBatch.parse(data)
    except KafkaError:
        _refuse_frame(data)
    size, attributes, count = batch.batch_length + LOG_OVERHEAD, batch.attributes, batch.count
    codec = attributes & CODEC_MASK
    if len(data) - size >= LOG_OVERHEAD and _next_magic(data, size) is not None:
        raise NotOneBatch("A partition's records have to be one batch, not several.")
    if codec >= _ZSTD and not allows_zstd:
        if codec > _ZSTD:
            raise UnknownCodec(f"Unknown compression type {codec}.")
        raise UnsupportedCompressionType("Produce takes zstd from version 7 on.")
    if batch.base_offset:
        raise InvalidRecord(f"The base offset of a producer's batch has to be 0, not {batch.base_offset}.")
    if size > policy.max_message_bytes:
        raise MessageTooLarge(f"A batch of {size} bytes is above max.message.bytes, {policy.max_message_bytes}.")
    batch.check_crc()
    if (
        codec > _ZSTD
        or count <= 0
        or batch.last_offset_delta != count - 1
        or attributes & CONTROL_BIT
        or (batch.producer_id >= 0 and batch.base_sequence < 0)
    ):
        _refuse_header(batch)
    body = _unpacked(batch, SMALL_UNPACKED) if count <= SMALL_COUNT and size <= SMALL_SIZE else None
    if body is None and _demands_a_walk(batch, policy, now_ms):
        body = _unpacked(batch, limit := policy.max_message_bytes * UNPACKED_PER_MESSAGE_BYTE)
        if body is None:
            raise MessageTooLarge(f"A batch that has to be looked into unpacks to more than {limit} bytes.")
    if body is not None:
        batch = _look_inside(batch, body, policy, now_ms, where)
    elif policy.log_append_time:
        batch.retime(now_ms, log_append_time=True)
    elif attributes & LOG_APPEND_TIME_BIT:
        batch.retime(batch.max_timestamp, log_append_time=False)
    if batch.batch_length + LOG_OVERHEAD > policy.segment_bytes:
        raise RecordListTooLarge(f"A batch of {batch.size_in_bytes} bytes does not fit into a segment.")
    return batch


def is_one_batch(data: Buffer) -> bool:
    """Returns whether ``data`` is one batch by its length; otherwise :func:`validate_produced` refuses it."""
    if len(data) < HEADER_SIZE or data[MAGIC_AT] != MAGIC:
        return False
    size: int = _INT32_AT_8.unpack_from(data)[0] + LOG_OVERHEAD
    if not HEADER_SIZE <= size < len(data):
        return size == len(data)
    try:
        return _next_magic(data, size) is None
    except CorruptMessage:
        return False


def _next_magic(data: Buffer, at: int) -> int | None:
    """Returns the format of the batch or message ``at`` a position; None if it is truncated.

    Ignores stray bytes at the end, as Apache Kafka's ``ByteBufferLogInputStream`` does.
    """
    there = len(data) - at
    if there < LOG_OVERHEAD:
        return None
    length: int = _INT32_AT_8.unpack_from(data, at)[0]
    if length < _MIN_LENGTH:
        raise CorruptMessage(f"Record size {length} is less than the minimum record overhead ({_MIN_LENGTH})")
    if there <= MAGIC_AT:
        return None
    magic: int = data[at + MAGIC_AT]
    if magic > MAGIC:
        raise CorruptMessage(f"Invalid magic found in record: {magic if magic < 128 else magic - 256}")
    return magic if length + LOG_OVERHEAD <= there else None


def _refuse_frame(data: Buffer) -> NoReturn:
    """Raises the error for bytes that do not begin with a complete batch."""
    try:
        magic = _next_magic(data, 0)
    except CorruptMessage as error:
        raise NoMessage(str(error)) from None
    if magic is None:
        raise NotOneBatch("A partition's records have to be one batch; there is none, or a piece of one.")
    if magic != MAGIC:
        raise NotOneBatch(f"From version 3 on Produce takes record batches, not message format v{magic}.")
    raise CorruptMessage("A record batch is shorter than its header.")


def _refuse_header(batch: RecordBatch) -> NoReturn:
    """Raises the error for an invalid header."""
    codec, count = batch.attributes & CODEC_MASK, batch.count
    if codec > _ZSTD:
        raise UnknownServerError(f"Unknown compression type {codec}.")
    if batch.last_offset_delta < 0:
        raise InvalidRecord(f"Batch has an invalid offset range: [0, {batch.last_offset_delta}].")
    if count <= 0:
        raise InvalidRecord(f"A batch says that it has {count} records.")
    if batch.last_offset_delta != count - 1:
        raise InvalidRecord(f"A batch says that it has {count} records, and offsets 0 to {batch.last_offset_delta}.")
    if batch.is_control:
        raise InvalidRecord("Clients do not write control records.")
    raise InvalidRecord(f"Producer {batch.producer_id} sent sequence {batch.base_sequence}.")


def _demands_a_walk(batch: RecordBatch, policy: ProducePolicy, now_ms: int) -> bool:
    """Returns whether the records of a batch that is not small must be walked over.

    That is so if a config of the topic concerns them, or if the header's count of records is implausible: a wrong count
    would lead to a wrong log end offset. A record has at least seven bytes, and compresses to a 64th of that at best.
    """
    codec = batch.attributes & CODEC_MASK
    if batch.count * RECORD_MIN_SIZE > (batch.batch_length * PLAUSIBLE_RATIO if codec else batch.batch_length):
        return True
    if policy.compacted or (policy.compression is not None and policy.compression != codec):
        return True
    first, latest = batch.base_timestamp, batch.max_timestamp
    return _may_be_refused(batch, first if first < latest else latest, latest, policy, now_ms)


def _may_be_refused(batch: RecordBatch, earliest: int, latest: int, policy: ProducePolicy, now_ms: int) -> bool:
    """Returns whether the topic may refuse a timestamp between these two."""
    if policy.log_append_time:
        return batch.attributes & LOG_APPEND_TIME_BIT != 0
    if now_ms - earliest > policy.timestamp_before_max_ms or latest - now_ms > policy.timestamp_after_max_ms:
        return True
    return latest == NO_TIMESTAMP and batch.attributes & LOG_APPEND_TIME_BIT != 0


def _unpacked(batch: RecordBatch, limit: int) -> bytes | None:
    """Returns the decompressed records; None if they have more than ``limit`` bytes."""
    if not batch.attributes & CODEC_MASK:
        return batch.buffer[HEADER_SIZE:].tobytes()
    try:
        return body_of(batch, limit)
    except MessageTooLarge:
        return None
    except CorruptMessage as error:  # Apache Kafka does not expect this error of its decoders
        raise UnknownServerError(str(error)) from error


def _look_inside(batch: RecordBatch, body: bytes, policy: ProducePolicy, now_ms: int, where: Place) -> RecordBatch:
    """Walks over the records, refuses those that the topic does not accept, and corrects the header."""
    earliest, latest, in_order, keyless = walk(body, batch.count)
    if batch.attributes & LOG_APPEND_TIME_BIT:
        earliest = latest = batch.max_timestamp
    else:
        earliest += batch.base_timestamp
        latest += batch.base_timestamp
        if earliest < MIN_LONG or latest > MAX_LONG:
            raise InvalidRecord("A record's timestamp has more than 64 bits.")
    if (keyless and policy.compacted) or _may_be_refused(batch, earliest, latest, policy, now_ms):
        _check_each(batch, body, policy, now_ms, where)
    codec = batch.attributes & CODEC_MASK
    if policy.compression is not None and policy.compression != codec:
        batch = _recompress(batch, body, policy.compression, policy, in_order)
    elif codec and not in_order:  # Apache Kafka does not expect this either
        raise UnknownServerError("The offsets in a compressed batch do not follow one another.")
    if policy.log_append_time:
        batch.retime(now_ms, log_append_time=True)
    elif batch.max_timestamp != (latest := max(latest, NO_TIMESTAMP)) or batch.attributes & LOG_APPEND_TIME_BIT:
        batch.retime(latest, log_append_time=False)
    return batch


def _check_each(batch: RecordBatch, body: bytes, policy: ProducePolicy, now_ms: int, where: Place) -> None:
    """Refuses the batch if the topic does not take one of its records, and names these (KIP-467)."""
    oldest, newest = now_ms - policy.timestamp_before_max_ms, now_ms + policy.timestamp_after_max_ms
    wrong: list[tuple[int, str]] = []
    refusal: type[KafkaError] = InvalidRecord
    for index, record in enumerate(records_in(batch, body)):
        timestamp = record.timestamp
        if policy.compacted and record.key is None:
            wrong.append((index, f"{WITHOUT_KEY} {where[0]}-{where[1]}"))
        elif timestamp != NO_TIMESTAMP and not policy.log_append_time:
            if not oldest <= timestamp <= newest:
                refusal = InvalidTimestamp
                wrong.append((index, out_of_range(timestamp, record.offset, oldest, newest)))
        elif batch.is_log_append_time:
            refusal = InvalidTimestamp
            text = f"offset={record.offset}, timestamp={timestamp}"
            sizes = f"key={len(record.key or b'')} bytes, value={len(record.value or b'')} bytes"
            wrong.append((index, not_the_producers(f"DefaultRecord({text}, {sizes})")))
        if len(wrong) == NAMED_ERRORS:
            break
    if wrong:
        raise refused_for(wrong, refusal)


WITHOUT_KEY: Final = "Compacted topic cannot accept message without key in topic partition"


def out_of_range(timestamp: int, offset: int, oldest: int, newest: int) -> str:
    """Returns the text about a timestamp that is too old or too far ahead."""
    within = f"The timestamp should be within [{oldest}, {newest}]"
    return f"Timestamp {timestamp} of message with offset {offset} is out of range. {within}"


def not_the_producers(record: str) -> str:
    """Returns the text about a timestamp that only the broker may set."""
    return f"Invalid timestamp type in message {record}. Producer should not set timestamp type to LogAppendTime."


def refused_for(wrong: list[tuple[int, str]], kind: type[KafkaError]) -> KafkaError:
    """Returns the error that refuses a batch for the records at these indexes."""
    text = "One or more records have been rejected due to invalid timestamp"
    if kind is not InvalidTimestamp:
        named = ", ".join(f"RecordError(batchIndex={index}, message='{each}')" for index, each in wrong[:3])
        text = (
            f"One or more records have been rejected due to {len(wrong)} record errors in total, "
            f"and only showing the first three errors at most: [{named}]"
        )
    error = kind(text)
    error.record_errors = wrong
    return error


def _recompress(
    batch: RecordBatch, body: bytes, codec: Compression, policy: ProducePolicy, in_order: bool
) -> RecordBatch:
    """Returns the records compressed with the topic's codec, in the layout of Apache Kafka.

    Apache Kafka encodes each record again, with consecutive offsets and the first timestamp as the base. Most batches
    have that layout already.
    """
    from barnabas.records.builder import build_batch, recompress

    level = policy.compression_level
    if in_order and not batch.is_log_append_time and first_timestamp_delta(body) == 0:
        batch = recompress(batch, body, codec, level)
    else:
        batch = RecordBatch.parse(
            build_batch(
                ((record.key, record.value, record.timestamp, record.headers) for record in records_in(batch, body)),
                compression=codec,
                compression_level=level,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                is_transactional=batch.is_transactional,
            )
        )
    if batch.size_in_bytes > policy.max_message_bytes:
        raise MessageTooLarge(f"A batch is {batch.size_in_bytes} bytes as {codec.name.lower()}: too large.")
    return batch
