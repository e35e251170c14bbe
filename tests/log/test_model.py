"""Random operations on a log, compared with a list; and on a compacted log."""

from random import Random

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaStorageError, OffsetOutOfRange
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import create_log, open_log
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles
from tests.log.test_compaction_faults import Broker, content

ID = bytes(range(16))
DIRECTORY = "/data/orders-0"


class LogBesideAList(RuleBasedStateMachine):
    """``records`` are (offset, timestamp, value) of all records from offset 0 that were not truncated."""

    def __init__(self):
        super().__init__()
        self.files = FaultyFiles()
        self.files.makedirs(DIRECTORY)
        self.files.keep()
        self.before_truncations = []
        self.records, self.batch_starts = [], []
        self.start = 0
        self.epochs = []
        self.epoch = 0
        self.sequence, self.remembered, self.producer_id = 0, [], 3
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
        self.log = create_log(
            LogServices(LogDirectory(self.files, "/data")), DIRECTORY, "orders", 0, ID, self.config, now_ms=0
        )

    @rule(timestamps=st.lists(st.integers(0, 300), min_size=1, max_size=6), is_idempotent=st.booleans())
    def append(self, timestamps, is_idempotent):
        entries = []
        for timestamp in timestamps:
            self.serial += 1
            entries.append((None, b"%d" % self.serial, timestamp))
        producer = {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": self.sequence}
        batch = RecordBatch.parse(build_batch(entries, **(producer if is_idempotent else {})))
        if batch.size_in_bytes > self.config.segment_bytes:
            return
        base_offset = len(self.records)
        appended = self.log.append_as_leader(batch, leader_epoch=self.epoch, now_ms=0)
        assert (appended.base_offset, appended.is_duplicate) == (base_offset, False)
        self.add_to_model(entries)
        if is_idempotent:
            self.remembered.append((self.sequence, entries, base_offset))
            self.sequence += len(entries)

    def add_to_model(self, entries):
        """Adds the records of an appended batch to the model."""
        base_offset = len(self.records)
        self.records += [(base_offset + n, timestamp, value) for n, (_, value, timestamp) in enumerate(entries)]
        self.batch_starts.append(base_offset)
        if not self.epochs or self.epochs[-1][0] < self.epoch:
            self.epochs = [entry for entry in self.epochs if entry[1] < base_offset]
            self.epochs.append((self.epoch, base_offset))

    @precondition(lambda self: self.remembered)
    @rule(data=st.data())
    def repeat(self, data):
        """Retries a batch. The last one is known for ever; older ones are known until the log is reopened."""
        sequence, entries, base_offset = self.remembered[-1]
        batch = build_batch(entries, producer_id=self.producer_id, producer_epoch=0, base_sequence=sequence)
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
        """Removes earlier records from the model. The epoch of the offset then starts there."""
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
        self.before_truncations.append(self.state())
        self.log.truncate_to(offset, 0)
        self.start = min(self.start, offset)
        self.forget_from(offset)

    @rule(closed=st.booleans(), tail=st.binary(max_size=80))
    def reopen(self, closed, tail):
        if closed:
            self.log.close()
        files = self.files.survivor()
        if not closed:
            files.open(self.log.segments.active.path(".log")).write(tail)
        self.open(files, clean=closed)
        if not closed:
            self.adjust_after_crash()

    def open(self, files, *, clean=False):
        """Opens the log as another process does."""
        high_watermark, recovery_point = self.log.high_watermark, self.log.recovery_point
        self.files = files
        self.log = open_log(
            LogServices(LogDirectory(self.files, "/data")),
            DIRECTORY,
            "orders",
            0,
            self.config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=self.start,
            now_ms=0,
        )
        self.log.maybe_set_high_watermark(min(high_watermark, self.log.log_end_offset))
        # As Apache Kafka's LogLoader does.
        self.epochs = [entry for entry in self.epochs if entry[1] < len(self.records)]

    @rule(
        after=st.integers(1, 9),
        torn=st.integers(0, 300),
        doing=st.sampled_from(["append", "roll", "flush"]),
        timestamps=st.lists(st.integers(0, 300), min_size=1, max_size=4),
    )
    def die(self, after, torn, doing, timestamps):
        """Kills the process during an operation. A batch that was not acknowledged exists completely or not at all."""
        self.files.fail_at, self.files.torn = len(self.files.changes) + after, torn
        before, state = len(self.records), self.state()
        try:
            if doing == "append":
                self.append(timestamps, is_idempotent=False)
            else:
                getattr(self, doing)()
        except KafkaStorageError:
            assert self.files.has_failed
            if doing == "append":
                self.restore(state)
        self.open(self.files.survivor())
        added = self.log.log_end_offset - len(self.records)
        if added and len(self.records) == before:
            assert added == len(timestamps)
            values = range(self.serial - added + 1, self.serial + 1)
            self.add_to_model([(None, b"%d" % value, at) for value, at in zip(values, timestamps, strict=True)])
        self.adjust_after_crash()

    @rule(seed=st.integers(0, 5))
    def lose_power(self, seed):
        """Cuts the power. The log has what was flushed and a prefix of the rest; a truncation may be undone."""
        flushed = self.log.recovery_point
        self.open(self.files.survivor(power_cut=True, chance=Random(seed) if seed else None))
        end = self.log.log_end_offset
        assert end >= flushed
        found = self.all_records()
        current = self.state()
        for state in [current, *reversed(self.before_truncations)]:
            if state[0][self.start : end] == found[: max(len(state[0]) - self.start, 0)] and len(state[0]) >= end:
                break
        else:
            assert end == self.start and not found, "this was never in the log"
            state = current
        self.restore(state)
        self.records += [None] * (end - len(self.records))  # the log ends below its log start offset
        self.forget_from(end)
        self.start_at(self.start)
        self.adjust_after_crash()

    def adjust_after_crash(self):
        """Adopts the state after a crash where several states are valid."""
        end, found = self.log.log_end_offset, self.log.leader_epochs.entries
        if [entry for entry in found if entry[1] < end] == [entry for entry in self.epochs if entry[1] < end]:
            self.epochs = list(found)  # the epoch of deleted records may start at the log's end
        if self.remembered and self.remembered[-1][2] < self.start:
            # Its records are deleted, and the snapshot may be lost: the producer may be known or not.
            self.remembered, self.sequence, self.producer_id = [], 0, self.producer_id + 1

    def state(self):
        """Returns the state of the model, for :meth:`restore`."""
        producer = self.producer_id, self.sequence
        return list(self.records), list(self.batch_starts), list(self.epochs), list(self.remembered), producer

    def restore(self, state):
        records, batch_starts, epochs, remembered, (self.producer_id, self.sequence) = state
        self.records, self.batch_starts = list(records), list(batch_starts)
        self.epochs, self.remembered = list(epochs), list(remembered)

    def forget_from(self, offset):
        del self.records[offset:]
        self.batch_starts = [start for start in self.batch_starts if start < offset]
        self.epochs = [entry for entry in self.epochs if entry[1] < offset]
        self.remembered = [entry for entry in self.remembered if entry[2] < offset]
        self.sequence = self.remembered[-1][0] + len(self.remembered[-1][1]) if self.remembered else self.sequence

    def all_records(self):
        found, offset = [], self.start
        while data := self.log.read(offset, 300, up_to=self.log.log_end_offset, minimum_one=True):
            for batch in batches(data):
                batch.check_crc()
                found += [(record.offset, record.timestamp, record.value) for record in records_of(batch)]
                offset = batch.next_offset
        return [record for record in found if record[0] >= self.start]

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
        assert self.all_records() == self.records[self.start :]


class CompactedLogBesideAList(RuleBasedStateMachine):
    """``appended`` is (key, value) of all acknowledged records, by offset."""

    def __init__(self):
        super().__init__()
        self.appended, self.serial = [], 0
        self.files = FaultyFiles()
        self.files.makedirs("/data")
        self.files.keep()
        self.start()

    def start(self):
        self.broker = Broker(self.files)
        self.log = self.broker.log()
        self.log.maybe_set_high_watermark(self.log.log_end_offset)

    @rule(entries=st.lists(st.tuples(st.sampled_from(b"abcde"), st.booleans()), min_size=1, max_size=5))
    def append(self, entries):
        now_ms = self.broker.clock.time_ms()
        records = []
        for key, is_tombstone in entries:
            self.serial += 1
            records.append((b"%c" % key, None if is_tombstone else b"value %d" % self.serial))
        self.pending = records
        batch = RecordBatch.parse(build_batch([(key, value, now_ms) for key, value in records]))
        self.log.append_as_leader(batch, leader_epoch=0, now_ms=now_ms)
        self.log.maybe_set_high_watermark(self.log.log_end_offset)
        self.appended += records
        self.pending = []

    @rule()
    def roll(self):
        self.log.roll(self.broker.clock.time_ms())

    @rule(seconds=st.sampled_from([1, 3, 30, 70]))
    def wait(self, seconds):
        """Advances the clock: the cleaner runs, checkpoints are written, replaced files are deleted."""
        self.broker.clock.advance(seconds)

    @rule()
    def stop(self):
        self.broker.manager.close()
        self.files = self.files.survivor()
        self.start()

    @rule(after=st.integers(1, 60), torn=st.integers(0, 100), doing=st.sampled_from(["wait", "roll", "append"]))
    def die(self, after, torn, doing):
        self.files.fail_at, self.files.torn = len(self.files.changes) + after, torn
        self.pending = []
        try:
            if doing == "append":
                self.append([(ord("a"), False), (ord("f"), False)])
            elif doing == "roll":
                self.roll()
            else:
                self.wait(30)
        except KafkaStorageError:
            assert self.files.has_failed
        self.files = self.files.survivor()
        self.start()
        if self.log.log_end_offset > len(self.appended):
            self.appended += self.pending
        assert self.log.log_end_offset == len(self.appended)

    @rule(seed=st.integers(0, 5))
    def lose_power(self, seed):
        flushed = self.log.recovery_point
        self.files = self.files.survivor(power_cut=True, chance=Random(seed) if seed else None)
        self.start()
        end = self.log.log_end_offset
        assert flushed <= end <= len(self.appended)
        del self.appended[end:]

    @invariant()
    def the_latest_of_each_key_is_there(self):
        found = content(self.log)
        assert list(found) == sorted(found)
        for offset, record in found.items():
            assert record == self.appended[offset]
        latest = {key: offset for offset, (key, _) in enumerate(self.appended)}
        for key, offset in latest.items():
            if self.appended[offset][1] is not None:
                assert offset in found
            elif offset not in found:
                assert key not in {record[0] for record in found.values()}


LIVES = hypothesis.settings(
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
LogBesideAList.TestCase.settings = LIVES
TestLogBesideAList = LogBesideAList.TestCase
CompactedLogBesideAList.TestCase.settings = hypothesis.settings(LIVES, max_examples=50)
TestCompactedLogBesideAList = CompactedLogBesideAList.TestCase
