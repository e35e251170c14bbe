"""Record batches turned into message sets, for consumers from before Kafka 0.11.

Knows nothing of requests and logs. What is dropped has no place in those formats: headers, producers, the markers of
transactions, and in v0 timestamps. The rules are those of Apache Kafka 3.9's ``RecordsUtil.downConvert``.
"""

from itertools import islice

from barnabas.errors import UnsupportedCompressionType
from barnabas.records.batch import Buffer, Compression, RecordBatch, batches
from barnabas.records.message_set import build_messages, build_wrapper
from barnabas.records.record import records_of


def down_convert(data: Buffer, magic: int, *, first_offset: int) -> bytes:
    """The batches in ``data`` as a message set of that ``magic``, from the record at ``first_offset`` on.

    It has no more bytes than ``data``, or what came of the first batch; messages that do not fit are left out. A
    compressed batch stays one, as a wrapper, with what is in it before ``first_offset``: readers have always skipped
    that. Empty when no record of ``data`` can be shown.

    Raises UnsupportedCompressionType when the first batch to be shown is of zstd (a later one ends the set), and what
    :func:`~barnabas.records.record.records_of` raises.
    """
    out: list[bytes] = []
    left = len(data)
    for batch in batches(data):
        if batch.is_control:
            continue
        if batch.compression is Compression.ZSTD:
            if out:
                break
            raise UnsupportedCompressionType("A zstd batch cannot be turned into messages that an old client reads.")
        messages = _messages_of(batch, magic, first_offset)
        size = sum(map(len, messages))
        if not out or size <= left:
            out += messages
            left -= size
            continue
        out += islice(messages, _how_many_fit(messages, left))
        break
    return b"".join(out)


def _messages_of(batch: RecordBatch, magic: int, first_offset: int) -> list[bytes]:
    codec, log_append_time = batch.compression, batch.is_log_append_time
    if codec is Compression.NONE:
        records = (record for record in records_of(batch) if record.offset >= first_offset)
        return build_messages(records, magic, log_append_time=log_append_time)
    packed = list(records_of(batch))
    return [build_wrapper(packed, magic, codec, log_append_time=log_append_time)] if packed else []


def _how_many_fit(messages: list[bytes], room: int) -> int:
    for index, message in enumerate(messages):
        room -= len(message)
        if room < 0:
            return index
    return len(messages)
