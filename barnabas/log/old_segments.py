"""Rewrites segments of message formats v0 and v1 as record batches.

Knows nothing of which segments these are, nor of the rest of the log.
"""

import contextlib
import logging
from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.errors import CorruptMessage, KafkaError
from barnabas.log.files import File, Files
from barnabas.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from barnabas.records.batch import LOG_OVERHEAD, MAGIC, Compression
from barnabas.records.builder import build_batch
from barnabas.records.message_set import MAGIC_V1, Message, messages_in, records_of_message
from barnabas.records.record import Record

logger = logging.getLogger(__name__)

TMP_SUFFIX: Final = ".tmp"
STRIDE: Final = 1 << 20  # bytes per read, unless a message is larger
LARGEST: Final = 256 << 20  # a larger length of a message is damage
BATCH_BYTES: Final = 16 << 10  # keys and values in one batch of uncompressed messages
BATCH_RECORDS: Final = 1000

_ENTRY = Struct(">qi")


def is_first_message_intact(file: File) -> bool:
    """Returns whether the file starts with a message whose CRC matches."""
    first = next(_entries(file, file.size()), None)
    return first is not None and first[0].is_intact


def rewrite(files: Files, directory: str, name: str, size: int) -> None:
    """Replaces a ``.log`` of ``size`` bytes by batches with the same records, and deletes its indexes.

    A damaged message and everything after it is copied as it is.

    :raises OSError: a file cannot be read or written; the segment is then unchanged
    """
    path = f"{directory}/{name}"
    modified_ms = files.modified_ms(path)
    with contextlib.closing(files.open(path)) as old, contextlib.closing(files.create(path + TMP_SUFFIX)) as new:
        written = 0
        for data in _upgraded(old, size):
            new.write(data)
            written += len(data)
        new.fsync()
    files.set_modified_ms(path + TMP_SUFFIX, modified_ms)  # retention uses it for records without timestamps
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        files.delete(path.removesuffix(LOG_SUFFIX) + suffix)
    files.rename(path + TMP_SUFFIX, path)
    files.fsync_path(directory)
    logger.info("Rewrote %s from an older message format, from %d to %d bytes", path, size, written)


def _upgraded(file: File, size: int) -> Iterator[bytes]:
    """Yields the new content of a segment of ``size`` bytes."""
    position, gathered = 0, _Gathered()
    for message, data in _entries(file, size):
        if message.magic == MAGIC:
            yield from gathered.batches()
            yield data
        else:
            try:
                full = gathered.add(message)
            except KafkaError as error:
                logger.warning("%s is damaged at position %d: %s", file.path, position, error)
                break
            yield from full
        position += len(data)
    yield from gathered.batches()
    while position < size and (data := file.pread(min(STRIDE, size - position), position)):
        yield data
        position += len(data)


def _entries(file: File, size: int) -> Iterator[tuple[Message, bytes]]:
    """Yields the messages, wrappers and batches of a file with their bytes, up to the first invalid one."""
    position, wanted = 0, STRIDE
    while position < size:
        piece = file.pread(min(wanted, size - position), position)
        at = 0
        try:
            for message in messages_in(piece):
                start, at = at, at + message.size_in_bytes
                yield message, piece[start:at]
        except CorruptMessage:
            return
        position += at
        wanted = STRIDE
        if not at:
            wanted = LOG_OVERHEAD + (_ENTRY.unpack_from(piece)[1] if len(piece) >= _ENTRY.size else 0)
            if not len(piece) < wanted <= min(LARGEST, size - position):
                return


class _Gathered:
    """The records of the next batch: those of consecutive uncompressed messages, or of one wrapper."""

    __slots__ = ("_append_time", "_codec", "_records", "_size")

    def __init__(self) -> None:
        self._begin(Compression.NONE, None)

    def _begin(self, codec: Compression, append_time: int | None) -> None:
        self._records: list[Record] = []
        self._size = 0
        self._codec, self._append_time = codec, append_time

    def add(self, message: Message) -> list[bytes]:
        """Adds a message. Returns the batches that are complete now.

        :raises KafkaError: the message is corrupt
        """
        if message.magic > MAGIC_V1 or not message.is_intact:
            raise CorruptMessage(f"The message at offset {message.offset} is corrupt.")
        records = records_of_message(message)
        append_time = message.timestamp if message.is_log_append_time else None
        codec = Compression(message.codec)
        full: list[bytes] = []
        if codec or self._codec or append_time != self._append_time:
            full += self.batches()
            self._begin(codec, append_time)
        for record in records:
            last = self._records[-1].offset if self._records else record.offset - 1
            is_full = not codec and (self._size >= BATCH_BYTES or len(self._records) >= BATCH_RECORDS)
            if is_full or record.offset != last + 1:
                full += self.batches()
                self._begin(codec, append_time)
            self._records.append(record)
            self._size += len(record.key or b"") + len(record.value or b"")
        return full

    def batches(self) -> list[bytes]:
        """Returns the batch of the records so far, if there are any, and starts the next one."""
        records, codec, append_time = self._records, self._codec, self._append_time
        if not records:
            return []
        self._begin(Compression.NONE, None)
        batch = build_batch(
            ((record.key, record.value, record.timestamp) for record in records),
            base_offset=records[0].offset,
            compression=codec,
            log_append_time_ms=append_time,
        )
        return [bytes(batch)]
