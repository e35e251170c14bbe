"""A random life of a log, beside a list."""

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.config.topic import TopicConfig
from barnabas.errors import OffsetOutOfRange
from barnabas.log.recovery import create_log, open_log
from barnabas.log.services import LogServices
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles

ID = bytes(range(16))
DIRECTORY = "/data/orders-0"


class LogBesideAList(RuleBasedStateMachine):
    """``records`` are (offset, timestamp, value) of everything from offset 0 that was not truncated."""

    def __init__(self):
        super().__init__()
        self.files = FaultyFiles()
        self.files.makedirs(DIRECTORY)
        self.records, self.batch_starts = [], []
        self.start = 0
        self.epochs = []
        self.epoch = 0
        self.sequence, self.remembered = 0, []
        self.serial = 0

    @initialize(
        segment_bytes=st.sampled_from([200, 500, 1500, 1 << 20]),
        interval=st.sampled_from([0, 100, 400, 4096]),
        index_bytes=st.sampled_from([36, 200, 1 << 20]),
        segment_ms=st.sampled_from([50, 1 << 40]),
    )
    def create(self, segment_bytes, interval, index_bytes, segment_ms):
        self.config = TopicConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            segment_ms=segment_ms,
            retention_ms=-1,
        )
        self.log = create_log(LogServices(self.files), DIRECTORY, "orders", 0, ID, self.config, now_ms=0)

    @rule(timestamps=st.lists(st.integers(0, 300), min_size=1, max_size=6), is_idempotent=st.booleans())
    def append(self, timestamps, is_idempotent):
        entries = []
        for timestamp in timestamps:
            self.serial += 1
            entries.append((None, b"%d" % self.serial, timestamp))
        producer = {"producer_id": 3, "producer_epoch": 0, "base_sequence": self.sequence} if is_idempotent else {}
        batch = RecordBatch.parse(build_batch(entries, **producer))
        if batch.size_in_bytes > self.config.segment_bytes:
            return
        base_offset = len(self.records)
        appended = self.log.append_as_leader(batch, leader_epoch=self.epoch, now_ms=0)
        assert (appended.base_offset, appended.is_duplicate) == (base_offset, False)
        self.records += [(base_offset + n, timestamp, value) for n, (_, value, timestamp) in enumerate(entries)]
        self.batch_starts.append(base_offset)
        if not self.epochs or self.epochs[-1][0] < self.epoch:
            self.epochs.append((self.epoch, base_offset))
        if is_idempotent:
            self.remembered.append((self.sequence, entries, base_offset))
            self.sequence += len(entries)

    @precondition(lambda self: self.remembered)
    @rule(data=st.data())
    def repeat(self, data):
        """The last batch is remembered over everything; older ones until the log is opened again."""
        sequence, entries, base_offset = self.remembered[-1]
        batch = build_batch(entries, producer_id=3, producer_epoch=0, base_sequence=sequence)
        appended = self.log.append_as_leader(RecordBatch.parse(batch), leader_epoch=self.epoch, now_ms=0)
        assert (appended.base_offset, appended.is_duplicate) == (base_offset, True)

    @rule(share=st.floats(0, 1))
    def commit(self, share):
        low = self.log.high_watermark
        self.log.maybe_set_high_watermark(low + round(share * (len(self.records) - low)))

    @rule()
    def lead_again(self):
        self.epoch += 1

    @rule()
    def roll(self):
        self.log.roll(0)

    @rule()
    def flush(self):
        self.log.flush()
        assert self.log.recovery_point == len(self.records)

    def start_at(self, offset):
        """Earlier records are gone, and an epoch that began before has begun there."""
        self.start = offset
        moved = {max(start, offset): epoch for epoch, start in self.epochs}
        self.epochs = [(epoch, start) for start, epoch in moved.items()]

    @rule(share=st.floats(0, 1))
    def delete_records(self, share):
        offset = self.start + round(share * (self.log.high_watermark - self.start))
        self.log.delete_records_before(offset)
        self.start_at(offset)

    @rule(retention_bytes=st.integers(0, 3000))
    def retain_bytes(self, retention_bytes):
        self.log.update_config(self.config._replace(retention_bytes=retention_bytes))
        self.log.enforce_retention(0)
        self.log.update_config(self.config)
        assert self.log.log_start_offset <= self.log.high_watermark
        self.start_at(self.log.log_start_offset)

    @rule(age=st.integers(0, 300))
    def retain_time(self, age):
        self.log.update_config(self.config._replace(retention_ms=age))
        self.log.enforce_retention(300)
        self.log.update_config(self.config)
        self.start_at(self.log.log_start_offset)
        for segment in self.log.segments[:1]:
            if segment is not self.log.segments.active and self.log.high_watermark >= self.log.segments[1].base_offset:
                assert 300 - segment.largest_timestamp()[0] <= age

    @rule(share=st.floats(0, 1))
    def truncate(self, share):
        offset = self.log.high_watermark + round(share * (len(self.records) - self.log.high_watermark))
        if offset == len(self.records):
            return
        offset = max(start for start in self.batch_starts if start <= offset)
        self.log.truncate_to(offset, 0)
        self.start = min(self.start, offset)
        del self.records[offset:]
        self.batch_starts = [start for start in self.batch_starts if start < offset]
        self.epochs = [entry for entry in self.epochs if entry[1] < offset]
        self.remembered = [entry for entry in self.remembered if entry[2] < offset]
        self.sequence = self.remembered[-1][0] + len(self.remembered[-1][1]) if self.remembered else self.sequence

    @rule(closed=st.booleans(), tail=st.binary(max_size=80))
    def reopen(self, closed, tail):
        high_watermark, recovery_point = self.log.high_watermark, self.log.recovery_point
        if closed:
            self.log.close()
        self.files = self.files.survivor()
        active = self.log.segments.active.path(".log")
        if not closed:
            self.files.open(active).write(tail)
        self.log = open_log(
            LogServices(self.files),
            DIRECTORY,
            "orders",
            0,
            self.config,
            clean=closed,
            recovery_point=recovery_point,
            log_start_offset=self.start,
            now_ms=0,
        )
        self.log.maybe_set_high_watermark(min(high_watermark, self.log.log_end_offset))
        self.epochs = [entry for entry in self.epochs if entry[1] < len(self.records)]  # as Apache Kafka's loader

    @invariant()
    def offsets_are_the_models(self):
        if hasattr(self, "log"):
            assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, len(self.records))
            assert self.start <= self.log.high_watermark <= len(self.records)
            assert self.log.segments.start <= self.start
            assert self.log.leader_epochs.entries == self.epochs

    @rule(share=st.floats(0, 1), max_bytes=st.sampled_from([0, 1, 70, 150, 400, 1 << 20]), minimum_one=st.booleans())
    def read(self, share, max_bytes, minimum_one):
        offset = self.start + round(share * (len(self.records) - self.start))
        up_to = self.log.high_watermark
        data = self.log.read(offset, max_bytes, up_to=up_to, minimum_one=minimum_one)
        found = list(batches(data))
        assert sum(batch.size_in_bytes for batch in found) == len(data)
        assert len(data) <= max_bytes or (minimum_one and len(found) == 1)
        records = [(record.offset, record.timestamp, record.value) for batch in found for record in records_of(batch)]
        assert records == self.records[records[0][0] : records[0][0] + len(records)] if records else True
        assert all(offset < up_to for offset, _, _ in records)
        if records:
            assert found[0].base_offset <= offset <= found[0].last_offset
        elif minimum_one and offset < up_to:
            end = next((start for start in self.batch_starts if start > offset), len(self.records))
            assert end > up_to, "a whole batch was there to be read"

    @rule(offset=st.integers(-5, 5))
    def read_outside(self, offset):
        wrong = self.start + offset if offset < 0 else len(self.records) + 1 + offset
        try:
            self.log.read(wrong, 100, up_to=len(self.records), minimum_one=True)
        except OffsetOutOfRange:
            return
        raise AssertionError(f"{wrong} was read")

    @rule(timestamp=st.integers(-5, 310))
    def find(self, timestamp):
        there = self.records[self.start :]
        expected = next(((at, offset) for offset, at, _ in there if at >= timestamp), None)
        found = self.log.offset_for_timestamp(timestamp, len(self.records))
        assert (found[:2] if found else None) == expected

    @rule()
    def read_everything(self):
        found, offset = [], self.start
        while data := self.log.read(offset, 300, up_to=len(self.records), minimum_one=True):
            for batch in batches(data):
                found += [(record.offset, record.timestamp, record.value) for record in records_of(batch)]
                offset = batch.next_offset
        assert [record for record in found if record[0] >= self.start] == self.records[self.start :]


LogBesideAList.TestCase.settings = hypothesis.settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
TestLogBesideAList = LogBesideAList.TestCase
