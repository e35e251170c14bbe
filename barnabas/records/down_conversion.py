"""Record batches turned into message sets, for consumers from before Kafka 0.11.

Knows nothing of requests and logs. What is dropped has no place in those formats: headers, producers, the markers of
transactions, and in v0 timestamps. The rules are those of Apache Kafka 3.9's ``RecordsUtil.downConvert``.
"""

from itertools import islice

from barnabas.errors import KafkaError, UnsupportedCompressionType
from barnabas.records.batch import Buffer, Compression, RecordBatch, batches
from barnabas.records.message_set import build_messages, build_wrapper
from barnabas.records.record import UNPACKED_LIMIT, records_of


def down_convert(data: Buffer, magic: int, *, first_offset: int, unpacked_limit: int = UNPACKED_LIMIT) -> bytes:
    """The batches in ``data`` as a message set of that ``magic``, from the record at ``first_offset`` on.

    It has no more bytes than ``data``, or what came of the first batch; messages that do not fit are left out. A
    compressed batch stays one, as a wrapper, with what is in it before ``first_offset``: readers have always skipped
    that. Empty when no record of ``data`` can be shown.

    A batch that cannot be shown ends the set before it; where it is the first, this raises UnsupportedCompressionType
    for zstd, and what :func:`~barnabas.records.record.records_of` raises, whose limit is ``unpacked_limit``.
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
        raise UnsupportedCompressionType("A zstd batch cannot be turned into messages that an old client reads.")
    packed = list(records_of(batch, limit=limit))
    return [build_wrapper(packed, magic, codec, log_append_time=log_append_time)] if packed else []


def _how_many_fit(messages: list[bytes], room: int) -> int:
    for index, message in enumerate(messages):
        room -= len(message)
        if room < 0:
            return index
    return len(messages)
