"""What a Fetch from before version 4 is given: message sets, made of the log's batches while it waits.

Knows nothing of requests and responses. How much is read follows Apache Kafka 3.9's ``ReplicaManager.readFromLog`` and
``LazyDownConversionRecords``, with a limit of our own: turning records costs the event loop time.
"""

from barnabas.cluster.partition import Partition
from barnabas.errors import CorruptMessage, InvalidRecord, UnsupportedCompressionType
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import batches
from barnabas.records.down_conversion import down_convert
from barnabas.records.message_set import MAGIC_V0, MAGIC_V1
from barnabas.records.validation import UNPACKED_PER_MESSAGE_BYTE

HAS_TIMESTAMPS = 2
"""From this version of Fetch on messages are of format v1 (KIP-32)."""

AT_ONCE = 256 << 10
"""Bytes of batches that are turned for one request, shared among its partitions: the client asks again for more."""

AT_LEAST = 16 << 10
"""A partition's part of it, however many there are."""

SKIPPED = 16
"""How many reads that show nothing, because transaction markers are all there is, one request may cost."""


class MessageSets:
    """How much one such request is given, and in which format."""

    __slots__ = ("_magic", "_share")

    def __init__(self, version: int, partitions: int) -> None:
        self._magic = MAGIC_V0 if version < HAS_TIMESTAMPS else MAGIC_V1
        self._share = max(AT_ONCE // max(partitions, 1), AT_LEAST)

    def check(self, log: PartitionLog) -> None:
        """Raise UnsupportedCompressionType for a topic whose batches are all of zstd, before any is looked at."""
        if log.config.compression_type == "zstd":
            raise UnsupportedCompressionType

    def read(self, partition: Partition, offset: int, limit: int, *, up_to: int, minimum_one: bool) -> bytes:
        """Messages from ``offset`` on, of batches that come to ``limit`` bytes.

        With ``minimum_one`` the first batch is given whole. Without, as before KIP-74, one that is larger is cut off at
        ``limit``: the client finds that it asked for too little, and tells its user, where an empty set would let it
        ask for ever. Raises what :meth:`Partition.read` raises; CorruptMessage where a batch cannot be read, and
        MessageTooLarge where it unpacks to more than a producer of such messages may send.
        """
        at, share = offset, min(limit, self._share)
        unpacked = partition.log.config.max_message_bytes * UNPACKED_PER_MESSAGE_BYTE
        for _ in range(SKIPPED):
            data = partition.read(at, share, up_to=up_to, minimum_one=True)
            try:
                messages = down_convert(data, self._magic, first_offset=offset, unpacked_limit=unpacked)
            except InvalidRecord as error:  # which no consumer was ever told
                raise CorruptMessage(str(error)) from error
            if messages:
                return messages if minimum_one or len(data) <= limit else messages[:limit]
            if not data:
                break
            at = max(batch.next_offset for batch in batches(data))
        return b""
