"""The layouts of record batches (magic 2) and message sets (magic 0 and 1).

Knows nothing of the files that contain them. Sources: KIP-98, KIP-82, KIP-32; Apache Kafka's ``DefaultRecordBatch``,
``DefaultRecord`` and ``LegacyRecord``.
"""

from construct import (
    BitsInteger,
    BitStruct,
    Bytes,
    Flag,
    If,
    Int8sb,
    Int16sb,
    Int32sb,
    Int64sb,
    Prefixed,
    PrefixedArray,
    Struct,
    Terminated,
    this,
)

from barnabas.cli.layouts.primitives import INT_BYTES, UINT32, VAR_BYTES, VARINT, VARLONG

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

#: The beginning of all three formats, with the length and the magic byte.
PREFIX = Struct("offset" / Int64sb, "length" / Int32sb, "epoch_or_crc" / Bytes(4), "magic" / Int8sb)
OVERHEAD = 12  #: the size of offset and length, which the length does not include

BATCH = Struct(
    "base_offset" / Int64sb,
    "batch_length" / Int32sb,
    "partition_leader_epoch" / Int32sb,
    "magic" / Int8sb,
    "crc" / UINT32,
    "attributes"
    / BitStruct(
        "unused" / BitsInteger(9),
        "has_delete_horizon" / Flag,
        "is_control" / Flag,
        "is_transactional" / Flag,
        "is_log_append_time" / Flag,
        "codec" / BitsInteger(3),
    ),
    "last_offset_delta" / Int32sb,
    "base_timestamp" / Int64sb,
    "max_timestamp" / Int64sb,
    "producer_id" / Int64sb,
    "producer_epoch" / Int16sb,
    "base_sequence" / Int32sb,
    "count" / Int32sb,
)
BATCH_CHECKED_FROM = 21  #: the CRC-32C covers everything from here on

HEADER = Struct("key" / VAR_BYTES, "value" / VAR_BYTES)
RECORD = Prefixed(
    VARINT,
    Struct(
        "attributes" / Int8sb,
        "timestamp_delta" / VARLONG,
        "offset_delta" / VARINT,
        "key" / VAR_BYTES,
        "value" / VAR_BYTES,
        "headers" / PrefixedArray(VARINT, HEADER),
        Terminated,
    ),
)

MESSAGE = Struct(
    "offset" / Int64sb,
    "length" / Int32sb,
    "crc" / UINT32,
    "magic" / Int8sb,
    "attributes" / BitStruct("unused" / BitsInteger(4), "is_log_append_time" / Flag, "codec" / BitsInteger(3)),
    "timestamp" / If(this.magic > 0, Int64sb),
    "key" / INT_BYTES,
    "value" / INT_BYTES,
)
MESSAGE_CHECKED_FROM = 16  #: the CRC-32 covers everything from here on

MIN_LENGTHS = {0: 14, 1: 22, 2: BATCH.sizeof() - OVERHEAD}
"""The smallest length by magic byte."""
