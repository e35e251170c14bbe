"""One range of offsets of a partition, read as Arrow tables: fetched ahead, decoded, and no more of it than was asked.

Knows nothing of Spark, nor of why these offsets. What is said of lost data is what Apache Spark's Kafka source says:
records that should be there and are not end the read, or with `fail_on_data_loss` False are warned about.
"""

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa

from barnabas.columnar.decoding import decode_each, reach
from barnabas.errors import CorruptMessage, OffsetOutOfRange, RequestTimedOut
from barnabas.pipelines.client import EARLIEST, LATEST, TopicPartition
from barnabas.pipelines.client.fetching import Fetched, Fetcher, FetchSettings, TopicGone
from barnabas.pipelines.client.memory import keep_freed_memory
from barnabas.pipelines.offsets import DataLoss

if TYPE_CHECKING:
    from barnabas.pipelines.client.cluster import Cluster

logger = logging.getLogger(__name__)

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


def read(
    cluster: "Cluster",
    topic: str,
    partition: int,
    start: int,
    end: int,
    *,
    topic_id: UUID | str | None = None,
    headers: bool = False,
    isolation: str = READ_UNCOMMITTED,
    fail_on_data_loss: bool = True,
    check_crcs: bool = True,
    fetch_bytes: int = FetchSettings().bytes_at_once,
    max_wait_ms: int = FetchSettings().max_wait_ms,
    rack: str = "",
    patience: float = FetchSettings().patience,
) -> Iterator[pa.RecordBatch]:
    """The records from offset ``start`` to before ``end``, in order, as tables of some megabytes.

    With ``topic_id`` a topic that was deleted and made again meanwhile is not mistaken for the one that is meant.
    ``rack`` is where this process is: brokers may send it to a replica there (KIP-392). Leaders that move and brokers
    that are away are waited for, ``patience`` seconds; about three times ``fetch_bytes`` are held at a time, and more
    only where one batch is larger.

    Raises DataLoss for what is not there any more, unless ``fail_on_data_loss`` is False; RequestTimedOut where an open
    transaction keeps the rest from being read; CorruptMessage; and what :class:`Fetcher` raises.
    """
    keep_freed_memory()
    settings = FetchSettings(fetch_bytes, max_wait_ms, isolation == READ_COMMITTED, rack, patience)
    wanted = UUID(topic_id) if isinstance(topic_id, str) else topic_id
    fetcher = Fetcher(cluster, TopicPartition(topic, partition), wanted, settings)
    reader = _Reader(cluster, TopicPartition(topic, partition), fetcher, settings, fail_on_data_loss)
    for fetched, position in reader.fetches(start, end):
        for part in decode_each(
            fetched.data,
            topic=topic,
            partition=partition,
            start=position,
            end=end,
            aborted=fetched.aborted,
            headers=headers,
            check_crcs=check_crcs,
        ):
            if part.batch is not None:
                yield part.batch


class _Reader:
    """The way through a range, and what to do where it is blocked."""

    def __init__(
        self,
        cluster: "Cluster",
        where: TopicPartition,
        fetcher: Fetcher,
        settings: FetchSettings,
        fail_on_data_loss: bool,
    ) -> None:
        self._cluster, self._where, self._fetcher, self._settings = cluster, where, fetcher, settings
        self._fail_on_data_loss = fail_on_data_loss
        self._waiting_since: float | None = None

    def fetches(self, position: int, end: int) -> Iterator[tuple[Fetched, int]]:
        """What was fetched, and from which offset on; the next fetch is on its way when one is given."""
        ahead: Any = None
        while position < end:
            begun, ahead = ahead or self._cluster.start(self._fetcher.fetch, position), None
            try:
                fetched: Fetched = self._cluster.finish(begun)
            except TopicGone as gone:
                self._lost(position, end, str(gone))
                return
            except OffsetOutOfRange:
                there = self._skip_lost(position, end)
                if there == position:
                    if not self._is_patient():
                        raise
                    self._cluster.run(self._cluster.pause)
                position = there
                continue
            after = reach(fetched.data, position)
            if after > position:
                self._waiting_since = None
                if after < end:
                    ahead = self._cluster.start(self._fetcher.fetch, after)
                yield fetched, position
                position = after
            elif fetched.data:
                raise CorruptMessage(
                    f"{self._where} is corrupt at offset {position}: what was fetched has no whole batch"
                )
            elif not self._may_wait(fetched, position, end):
                return

    def _may_wait(self, fetched: Fetched, position: int, end: int) -> bool:
        """Whether to ask again after an answer without records; the broker has waited before it gave that one."""
        if self._is_patient():
            return True
        if self._settings.committed and fetched.stable_offset < fetched.high_watermark:
            raise RequestTimedOut(
                f"{self._where}: a transaction that is still open since offset {fetched.stable_offset} keeps the "
                f"records up to {end} from being read with isolation.level=read_committed"
            )
        self._lost(position, end, f"the partition ends at offset {fetched.high_watermark}")
        return False

    def _is_patient(self) -> bool:
        """Whether it is not too long ago that something came, or that this was asked for the first time."""
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        return now - self._waiting_since < self._settings.patience

    def _skip_lost(self, position: int, end: int) -> int:
        """Where to go on, when an offset is not there: retention has deleted it, or the log was cut off before it."""
        first, last = (self._cluster.list_offsets({self._where: at})[self._where].offset for at in (EARLIEST, LATEST))
        if position < first:
            self._lost(position, min(first, end), f"the partition begins at offset {first} now")
            return first
        if position > last:
            self._lost(position, end, f"the partition ends at offset {last} now")
            return end
        return position

    def _lost(self, first: int, end: int, why: str) -> None:
        loss = f"{self._where}: the records at offsets {first} to {end - 1} cannot be read: {why}"
        if self._fail_on_data_loss:
            raise DataLoss(
                f"{loss}. Set failOnDataLoss=false to go on with what there is, or begin again with a new checkpoint"
            )
        logger.warning("%s; going on, as failOnDataLoss=false", loss)
