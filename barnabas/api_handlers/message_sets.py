"""Message sets for Fetch before version 4, which are converted from the batches of the log.

Knows nothing of requests and responses. How much is read follows Apache Kafka 3.9's ``ReplicaManager.readFromLog`` and
``LazyDownConversionRecords``, with one more limit, since the conversion blocks the event loop.
"""

from barnabas.cluster.replication.partition import Partition
from barnabas.errors import CorruptMessage, InvalidRecord, UnsupportedCompressionType
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import batches
from barnabas.records.down_conversion import down_convert
from barnabas.records.message_set import MAGIC_V0, MAGIC_V1
from barnabas.records.validation import UNPACKED_PER_MESSAGE_BYTE

HAS_TIMESTAMPS = 2
"""The first version of Fetch with messages of format v1 (KIP-32)."""

CONVERTED_BYTES = 256 << 10
"""Bytes of batches to convert for one request, divided among its partitions. The client fetches the rest later."""

MIN_PARTITION_BYTES = 16 << 10
"""Bytes of batches to convert for a partition at least, however many partitions there are."""

MAX_READS = 16
"""How often to read on if the batches that were read are all transaction markers."""


class MessageSets:
    """The message sets for one request."""

    __slots__ = ("_magic", "_share")

    def __init__(self, version: int, partitions: int) -> None:
        self._magic = MAGIC_V0 if version < HAS_TIMESTAMPS else MAGIC_V1
        self._share = max(CONVERTED_BYTES // max(partitions, 1), MIN_PARTITION_BYTES)

    def check(self, log: PartitionLog) -> None:
        """Checks the compression type of the topic.

        :raises UnsupportedCompressionType: it is zstd, which old clients cannot read
        """
        if log.config.compression_type == "zstd":
            raise UnsupportedCompressionType

    def read(self, partition: Partition, offset: int, limit: int, *, up_to: int, minimum_one: bool) -> bytes:
        """Returns messages from ``offset`` on, converted from at most ``limit`` bytes of batches.

        With ``minimum_one`` the first batch is returned whole. Without it, as before KIP-74, a larger one is cut off at
        ``limit``: the client then reports that its fetch size is too small. It would retry an empty set forever.

        :raises KafkaError: what :meth:`Partition.read` raises
        :raises CorruptMessage: a batch cannot be read
        :raises MessageTooLarge: a batch decompresses to more than a producer of message sets may send
        """
        at, share = offset, min(limit, self._share)
        unpacked_limit = partition.log.config.max_message_bytes * UNPACKED_PER_MESSAGE_BYTE
        for _ in range(MAX_READS):
            data = partition.read(at, share, up_to=up_to, minimum_one=True)
            try:
                messages = down_convert(data, self._magic, first_offset=offset, unpacked_limit=unpacked_limit)
            except InvalidRecord as error:  # consumers do not know INVALID_RECORD
                raise CorruptMessage(str(error)) from error
            if messages:
                return messages if minimum_one or len(data) <= limit else messages[:limit]
            if not data:
                break
            at = max(batch.next_offset for batch in batches(data))
        return b""
