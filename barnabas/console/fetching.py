"""Fetches batches from the leaders of partitions, without a consumer, which would hide some records.

Knows nothing of pages. A fetch returns at most the requested bytes, except that the first batch is whole.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas.cli.client import check_code
from barnabas.cli.requests import send_to_broker
from barnabas.console.reading import Missing
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.control import control_record_type
from barnabas.records.record import Record, records_of
from barnabas.wire.messages.fetch import FetchRequest

BYTES: Final = 512 << 10
"""The maximum size of a partition's data in one request, in bytes."""

READ_S: Final = 5.0
"""The maximum time that a page reads: compacted logs have many offsets without a record."""


class Found(NamedTuple):
    """A record and its position."""

    partition: int
    record: Record
    batch: RecordBatch

    @property
    def control(self) -> str | None:
        """The name of a control record's type; None for a record of data."""
        if not self.batch.is_control:
            return None
        kind = control_record_type(self.record.key)
        return "control record" if kind is None else kind.name


class Fetched(NamedTuple):
    """The response for one partition."""

    batches: list[RecordBatch]
    log_start: int
    high_watermark: int


class Topic:
    """A topic, as partitions with leaders.

    :param described: as described by kafka-python's admin client
    """

    def __init__(self, admin: Any, described: Mapping[str, Any]) -> None:
        self.name: str = described["name"]
        self._admin = admin
        topic_id = described.get("topic_id")
        self._id = UUID(str(topic_id)).bytes if topic_id else bytes(16)
        self.leaders: dict[int, int] = {
            each["partition_index"]: each["leader_id"]
            for each in sorted(described["partitions"], key=lambda each: int(each["partition_index"]))
        }

    def check(self, partition: int) -> None:
        """Checks that the partition exists. :raises Missing: it does not"""
        if partition not in self.leaders:
            raise Missing(f"There is no partition {partition} of a topic {self.name}.")

    def fetch(self, offsets: Mapping[int, int], size: int = BYTES, max_wait_ms: int = 0) -> dict[int, Fetched]:
        """Fetches partitions from these offsets, with one request to each leader. Partitions without a leader are left
        out.

        :raises click.ClickException: a broker responds with an error
        """
        by_leader: dict[int, dict[int, int]] = defaultdict(dict)
        for partition, offset in offsets.items():
            if self.leaders.get(partition, -1) >= 0:
                by_leader[self.leaders[partition]][partition] = offset
        found: dict[int, Fetched] = {}
        for leader, wanted in by_leader.items():
            answer = send_to_broker(self._admin, leader, self._request(wanted, size, max_wait_ms))
            check_code(answer.error_code)
            for topic in answer.responses:
                for each in topic.partitions:
                    check_code(each.error_code)
                    found[each.partition_index] = Fetched(
                        list(whole_batches(each.records)), each.log_start_offset, each.high_watermark
                    )
        return found

    def _request(self, wanted: Mapping[int, int], size: int, max_wait_ms: int) -> FetchRequest:
        of = FetchRequest.FetchTopic
        partitions = [
            of.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size)
            for partition, offset in wanted.items()
        ]
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1 if max_wait_ms else 0,
            max_bytes=max(size, 1 << 20),
            topics=[of(topic=self.name, topic_id=self._id, partitions=partitions)],
        )

    def bounds(self, partitions: list[int], timestamp: int | None = None) -> dict[int, tuple[int, int, int]]:
        """Returns, by partition, the first offset, the end offset, and the first offset of a timestamp (or the end
        offset).
        """
        from kafka import TopicPartition
        from kafka.admin import OffsetSpec

        where = [TopicPartition(self.name, each) for each in partitions if self.leaders[each] >= 0]
        if not where:
            return {}
        ask = self._admin.list_partition_offsets
        first, end = (ask(dict.fromkeys(where, spec)) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
        at = ask(dict.fromkeys(where, timestamp)) if timestamp is not None else end
        return {
            each.partition: (
                first[each].offset, end[each].offset, at[each].offset if at[each].offset >= 0 else end[each].offset
            )
            for each in where
        }  # fmt: skip

    def records(self, partition: int, offset: int, end: int) -> Iterator[Found]:
        """Yields the records from an offset to before `end`; stops after ``READ_S``."""
        deadline = time.monotonic() + READ_S
        while offset < end and time.monotonic() < deadline:
            fetched = self.fetch({partition: offset}).get(partition)
            if fetched is None or not fetched.batches:
                return
            for batch in fetched.batches:
                if batch.next_offset <= offset:
                    continue
                for record in records_of(batch):
                    if offset <= record.offset < end:
                        yield Found(partition, record, batch)
                offset = batch.next_offset

    def records_of_several(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[Found]:
        """Yields the records of several partitions, in no order, each from an offset to before another; stops after
        ``READ_S``.
        """
        deadline = time.monotonic() + READ_S
        left = {partition: start for partition, (start, end) in ranges.items() if start < end}
        while left and time.monotonic() < deadline:
            before = dict(left)
            for partition, fetched in self.fetch(left).items():
                _, end = ranges[partition]
                for batch in fetched.batches:
                    for record in records_of(batch) if batch.next_offset > left[partition] else ():
                        if left[partition] <= record.offset < end:
                            yield Found(partition, record, batch)
                    left[partition] = max(left[partition], batch.next_offset)
            if left == before:
                return
            left = {partition: offset for partition, offset in left.items() if offset < ranges[partition][1]}


def whole_batches(records: Any) -> Iterator[RecordBatch]:
    """Yields the whole batches of a response; the last one may be truncated to the requested size."""
    data = b"" if records is None else bytes(records)
    at = 0
    while at + 12 <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if at + size > len(data):
            return
        yield from batches(data[at : at + size])
        at += size
