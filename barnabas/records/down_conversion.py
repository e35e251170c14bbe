"""Converts record batches to message sets, for consumers older than Kafka 0.11.

Knows nothing of requests and logs. Those formats have no headers, producer ids and markers, and v0 has no timestamps.
The rules are those of Apache Kafka 3.9's ``RecordsUtil.downConvert``.
"""

from itertools import islice

from barnabas.errors import KafkaError, UnsupportedCompressionType
from barnabas.records.batch import Buffer, Compression, RecordBatch, batches
from barnabas.records.message_set import build_messages, build_wrapper
from barnabas.records.record import UNPACKED_LIMIT, records_of


def down_convert(data: Buffer, magic: int, *, first_offset: int, unpacked_limit: int = UNPACKED_LIMIT) -> bytes:
    """Converts the batches in ``data`` to a message set of that ``magic``, from ``first_offset`` on.

    The set is not larger than ``data`` or the converted first batch; messages that do not fit are left out. A
    compressed batch becomes a wrapper with all its records, also those before ``first_offset``, which readers skip. The
    set is empty if ``data`` contains control records only. It ends before the first batch that cannot be converted.

    :param unpacked_limit: the maximum size of a decompressed batch
    :raises UnsupportedCompressionType: the first batch is compressed with zstd
    :raises KafkaError: the first batch cannot be read, as in :func:`~barnabas.records.record.records_of`
    """
    out: list[bytes] = []
    left = len(data)
    for batch in batches(data):
        if batch.is_control:
            continue
        try:
            messages = _messages_of(batch, magic, first_offset, unpacked_limit)
        except KafkaError:
            if out:
                break
            raise
        size = sum(map(len, messages))
        if not out or size <= left:
            out += messages
            left -= size
            continue
        out += islice(messages, _how_many_fit(messages, left))
        break
    return b"".join(out)


def _messages_of(batch: RecordBatch, magic: int, first_offset: int, limit: int) -> list[bytes]:
    codec, log_append_time = batch.compression, batch.is_log_append_time
    if codec is Compression.NONE:
        records = (record for record in records_of(batch) if record.offset >= first_offset)
        return build_messages(records, magic, log_append_time=log_append_time)
    if codec is Compression.ZSTD:
        raise UnsupportedCompressionType("A batch that is compressed with zstd cannot be converted to an older format.")
    packed = list(records_of(batch, limit=limit))
    return [build_wrapper(packed, magic, codec, log_append_time=log_append_time)] if packed else []


def _how_many_fit(messages: list[bytes], room: int) -> int:
    for index, message in enumerate(messages):
        room -= len(message)
        if room < 0:
            return index
    return len(messages)
