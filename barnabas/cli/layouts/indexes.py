"""The layouts of the three indexes of a segment, and of producer snapshots.

Knows nothing of the segment. Offsets in ``.index`` and ``.timeindex`` are relative to the base offset in the file's
name.
"""

from construct import Int16sb, Int32sb, Int64sb, Struct

from barnabas.cli.layouts.primitives import UINT32

OFFSET_ENTRY = Struct("relative_offset" / Int32sb, "position" / Int32sb)
TIME_ENTRY = Struct("timestamp" / Int64sb, "relative_offset" / Int32sb)

#: An aborted transaction (Apache Kafka's ``AbortedTxn``). The last offset is the marker's. The last stable offset is
#: the one after this transaction ended.
ABORTED_TRANSACTION = Struct(
    "version" / Int16sb,
    "producer_id" / Int64sb,
    "first_offset" / Int64sb,
    "last_offset" / Int64sb,
    "last_stable_offset" / Int64sb,
)
ABORTED_TRANSACTION_VERSION = 0

SNAPSHOT = Struct("version" / Int16sb, "crc" / UINT32, "count" / Int32sb)
SNAPSHOT_CHECKED_FROM = 6  #: the CRC-32C covers everything from here on
SNAPSHOT_VERSION = 1
PRODUCER = Struct(
    "producer_id" / Int64sb,
    "producer_epoch" / Int16sb,
    "last_sequence" / Int32sb,
    "last_offset" / Int64sb,
    "offset_delta" / Int32sb,
    "timestamp" / Int64sb,
    "coordinator_epoch" / Int32sb,
    "current_txn_first_offset" / Int64sb,
)
