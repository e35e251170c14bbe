"""Reads a range of offsets of a partition as Arrow tables, with the next fetch in flight while one is decoded.

Knows nothing of Spark, nor of why these offsets are read. Messages about lost data are those of Apache Spark's Kafka
source: missing records fail the read, or are logged as a warning if `fail_on_data_loss` is False.
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
    """Yields the records from offset `start` to before `end`, in order, in tables of a few megabytes.

    The memory use is about three times `fetch_bytes`, or more if a single batch is larger.

    :param topic_id: the topic's id, so that a new topic of the same name is not read.
    :param rack: the rack of this process, for reads from a replica in the same rack (KIP-392).
    :param patience: seconds to wait for a new leader, or for brokers that do not respond.
    :raises DataLoss: some of the records do not exist any more; only if `fail_on_data_loss`.
    :raises RequestTimedOut: an open transaction blocks the rest of the range.
    :raises CorruptMessage: a batch is corrupt.
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
    """Reads a range, and decides how to continue after a gap or an error."""

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
        """Yields the fetches of a range with the offset where each starts; the next fetch is in flight meanwhile."""
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
                    f"{self._where} is corrupt at offset {position}: the fetched bytes contain no whole batch"
                )
            elif not self._may_wait(fetched, position, end):
                return

    def _may_wait(self, fetched: Fetched, position: int, end: int) -> bool:
        """Returns whether to fetch again after a response without records."""
        if self._is_patient():
            return True
        if self._settings.committed and fetched.stable_offset < fetched.high_watermark:
            raise RequestTimedOut(
                f"{self._where}: a transaction that is open since offset {fetched.stable_offset} blocks the records "
                f"before offset {end} for isolation.level=read_committed"
            )
        self._lost(position, end, f"the partition ends at offset {fetched.high_watermark}")
        return False

    def _is_patient(self) -> bool:
        """Returns whether records arrived, or the first fetch was sent, less than `patience` seconds ago."""
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        return now - self._waiting_since < self._settings.patience

    def _skip_lost(self, position: int, end: int) -> int:
        """Returns the offset to continue at if `position` does not exist: retention deleted it, or the log was
        truncated.
        """
        first, last = (self._cluster.list_offsets({self._where: at})[self._where].offset for at in (EARLIEST, LATEST))
        if position < first:
            self._lost(position, min(first, end), f"the partition begins at offset {first}")
            return first
        if position > last:
            self._lost(position, end, f"the partition ends at offset {last}")
            return end
        return position

    def _lost(self, first: int, end: int, why: str) -> None:
        loss = f"{self._where}: the records at offsets {first} to {end - 1} cannot be read: {why}"
        if self._fail_on_data_loss:
            raise DataLoss(
                f"{loss}. Set failOnDataLoss=false to continue with the other records, or start with a new checkpoint"
            )
        logger.warning("%s; continuing, as failOnDataLoss is false", loss)
