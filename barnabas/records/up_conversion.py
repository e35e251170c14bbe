"""Validates message sets of old producers, and converts them to a record batch.

Knows nothing of logs, requests and responses. The rules are those of Apache Kafka 3.9's ``LogValidator`` and
``UnifiedLog.analyzeAndValidateRecords``; 4.x does not have them any more.
"""

from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnknownServerError,
)
from barnabas.records.batch import MAGIC, NO_TIMESTAMP, Buffer, Compression, RecordBatch
from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.message_set import Message, Unreadable, messages_in, unwrapped
from barnabas.records.validation import (
    NAMED_ERRORS,
    UNPACKED_PER_MESSAGE_BYTE,
    WITHOUT_KEY,
    ProducePolicy,
    not_the_producers,
    out_of_range,
    refused_for,
    validate_produced,
)

Fault = tuple[type[KafkaError], str]


def validate_message_set(data: Buffer, policy: ProducePolicy, now_ms: int) -> RecordBatch | None:
    """Returns all messages in ``data`` as one record batch, ready to be stamped and appended; None without messages.

    A wrapper becomes a batch with its codec, unless the topic has another. A record batch is accepted, too. A truncated
    message at the end is left out, as in old brokers.

    :raises KafkaError: the error for the Produce response
    """
    shallow = _entries(data, policy)
    if not shallow:
        return None
    magic = shallow[0].magic
    if magic == MAGIC:
        if len(shallow) > 1:
            raise InvalidRecord("A partition's records have to be one batch, not several.")
        return validate_produced(memoryview(data)[: shallow[0].size_in_bytes], policy, now_ms)
    codec = next((message.codec for message in reversed(shallow) if message.codec), 0)
    if codec and len(shallow) > 1:
        raise InvalidRecord("A compressed message has to be the only one.")
    for message in shallow:
        if message.magic != magic:
            raise InvalidRecord(f"A message of format v{message.magic} stands among those of v{magic}.")
    try:
        batch = _converted(shallow[0] if codec else None, shallow, policy, now_ms)
    except Unreadable as error:  # Apache Kafka does not expect this error of its readers
        raise UnknownServerError(str(error)) from error
    if batch.size_in_bytes > policy.max_message_bytes:
        raise MessageTooLarge(f"The messages make a batch of {batch.size_in_bytes} bytes: too large.")
    if batch.size_in_bytes > policy.segment_bytes:
        raise RecordListTooLarge(f"A batch of {batch.size_in_bytes} bytes does not fit into a segment.")
    return batch


def _entries(data: Buffer, policy: ProducePolicy) -> list[Message]:
    """Returns the messages, wrappers and batches in ``data``; batches have not been validated."""
    found = []
    for entry in messages_in(data):
        if entry.magic > MAGIC:
            raise CorruptMessage(f"Invalid magic found in record: {entry.magic}")
        if entry.size_in_bytes > policy.max_message_bytes:
            raise MessageTooLarge(
                f"A message of {entry.size_in_bytes} bytes is above max.message.bytes, {policy.max_message_bytes}."
            )
        if entry.magic < MAGIC and not entry.is_intact:
            raise CorruptMessage(f"Message is corrupt (stored crc = {entry.crc}).")
        found.append(entry)
    return found


def _converted(wrapper: Message | None, shallow: list[Message], policy: ProducePolicy, now_ms: int) -> RecordBatch:
    """Returns the batch of the messages. :raises KafkaError: the topic does not accept one of them"""
    messages, append_time, codec = shallow, None, Compression.NONE
    if wrapper is not None:
        messages = unwrapped(wrapper, policy.max_message_bytes * UNPACKED_PER_MESSAGE_BYTE)
        append_time = wrapper.timestamp if wrapper.is_log_append_time else None
        codec = Compression(wrapper.codec)
    records: list[NewRecord] = []
    wrong: list[tuple[int, Fault]] = []
    for index, message in enumerate(messages):
        fault = None if wrapper is None else _fault_of_wrapped(message, wrapper)
        if fault is None:
            key, value = message.key_and_value()
            timestamp = message.timestamp if append_time is None else append_time
            is_append_time = message.is_log_append_time if wrapper is None else append_time is not None
            fault = _fault_of_record(index, key, timestamp, is_append_time, policy, now_ms)
            records.append((key, value, timestamp))
        if fault is not None:
            wrong.append((index, fault))
            if len(wrong) == NAMED_ERRORS:
                break
    if wrong:
        raise _refusal(wrong)
    return RecordBatch.parse(
        build_batch(
            records,
            compression=codec if policy.compression is None else policy.compression,
            compression_level=policy.compression_level,
            log_append_time_ms=now_ms if policy.log_append_time else None,
        )
    )


def _fault_of_wrapped(message: Message, wrapper: Message) -> Fault | None:
    """Returns what is wrong with an inner message. :raises CorruptMessage: its CRC is wrong; this refuses all"""
    if message.codec:
        return InvalidRecord, "A wrapped message cannot be compressed again."
    if message.magic != wrapper.magic:
        return InvalidRecord, f"A message of format v{message.magic} is wrapped in one of v{wrapper.magic}."
    if not message.is_intact:
        raise CorruptMessage(f"A wrapped message is corrupt (stored crc = {message.crc}).")
    return None


def _fault_of_record(
    offset: int, key: bytes | None, timestamp: int, is_append_time: bool, policy: ProducePolicy, now_ms: int
) -> Fault | None:
    """Returns why the topic does not take such a record; None where it does."""
    if policy.compacted and key is None:
        return InvalidRecord, WITHOUT_KEY
    if not policy.log_append_time and timestamp != NO_TIMESTAMP:
        oldest, newest = now_ms - policy.timestamp_before_max_ms, now_ms + policy.timestamp_after_max_ms
        if not max(oldest, 0) <= timestamp <= newest:
            return InvalidTimestamp, out_of_range(timestamp, offset, max(oldest, 0), newest)
    elif is_append_time:
        return InvalidTimestamp, not_the_producers(str(offset))
    return None


def _refusal(wrong: list[tuple[int, Fault]]) -> KafkaError:
    """Returns the error that names all messages at fault (KIP-467); a wrong timestamp decides which error it is."""
    kinds = {kind for _, (kind, _) in wrong}
    kind = InvalidTimestamp if InvalidTimestamp in kinds else InvalidRecord
    return refused_for([(index, reason) for index, (_, reason) in wrong], kind)
