"""Transactions in a log: the last stable offset, and the aborted transactions that readers skip."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTxnState,
    KafkaError,
    TransactionCoordinatorFenced,
)
from barnabas.log.producer_state import ProducerState
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transactions import marker_of
from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key, control_record_type
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles
from tests.log.conftest import NOW_MS, Tool, make_batch, make_marker, memory_place

SMALL = {"segment_bytes": 500, "index_interval_bytes": 150, "retention_ms": -1}


class Writer:
    """Appends to a log in transactions. Each batch has the producer's next sequence."""

    def __init__(self, log):
        self.log, self.sequences = log, {}

    def write(self, producer_id, count=1, *, is_transactional=True):
        sequence = self.sequences.get(producer_id, 0)
        values = [b"%d of %d" % (sequence + n, producer_id) for n in range(count)]
        keywords = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        made = make_batch(values, is_transactional=is_transactional, **keywords)
        self.append(made)
        self.sequences[producer_id] = sequence + count

    def plain(self, count=1):
        self.append(make_batch(count))

    def end(self, producer_id, *, abort, coordinator_epoch=0):
        self.append(make_marker(producer_id, abort=abort, coordinator_epoch=coordinator_epoch))

    def append(self, batch):
        self.log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        self.log.maybe_set_high_watermark(self.log.log_end_offset)


@pytest.fixture
def writer(tool):
    return Writer(tool.create(**SMALL))


def index_of(log):
    return [entry for segment in log.segments for entry in segment.transactions.entries]


def all_batches(log):
    offset, found = log.log_start_offset, []
    while data := log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True):
        found += batches(data)
        offset = found[-1].next_offset
    return found


def is_abort(batch):
    return control_record_type(next(records_of(batch)).key) is ControlRecordType.ABORT


def transactions_in(log):
    """Returns first offset, producer and marker (or None) of each transaction, and the index, from the batches."""
    started, ended, aborted = {}, [], []
    for batch in all_batches(log):
        if batch.is_control and batch.producer_id in started:
            first = started.pop(batch.producer_id)
            ended.append((first, batch.base_offset))
            if is_abort(batch):
                stable = min(started.values(), default=batch.next_offset)
                aborted.append(AbortedTransaction(batch.producer_id, first, batch.base_offset, stable))
        elif batch.is_transactional and not batch.is_control:
            started.setdefault(batch.producer_id, batch.base_offset)
    return sorted(started.values()), ended, aborted


def committed(log, max_bytes=1 << 20, offset=None):
    """Returns the offsets of the records that a read_committed consumer returns (KIP-98)."""
    found, offset = [], log.log_start_offset if offset is None else offset
    up_to = log.last_stable_offset
    while data := log.read(offset, max_bytes, up_to=up_to, minimum_one=True):
        pending = sorted(log.aborted_transactions(offset, data), key=lambda each: each.first_offset)
        aborting = set()
        for batch in batches(data):
            while pending and pending[0].first_offset <= batch.last_offset:
                aborting.add(pending.pop(0).producer_id)
            if batch.is_control:
                aborting.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborting):
                found += range(max(batch.base_offset, offset), batch.next_offset)
        assert not pending, "was told of what it does not meet"
        offset = batch.next_offset
    return found


# ------------------------------------------------------------ the last stable offset


def test_an_open_transaction_holds_back_the_last_stable_offset(writer):
    log = writer.log
    writer.plain(2)
    assert log.last_stable_offset == 2
    writer.write(7, 3)
    writer.plain(2)
    assert (log.last_stable_offset, log.high_watermark) == (2, 7)
    writer.end(7, abort=False)
    assert log.last_stable_offset == log.high_watermark == 8
    assert committed(log) == list(range(7))


def test_the_earliest_open_transaction_counts(writer):
    log = writer.log
    for producer_id in (1, 2, 3):
        writer.write(producer_id)
    writer.end(2, abort=True)
    assert log.last_stable_offset == 0
    writer.end(1, abort=False)
    assert log.last_stable_offset == 2
    writer.end(3, abort=False)
    assert log.last_stable_offset == 6
    assert committed(log) == [0, 2]
    assert index_of(log) == [AbortedTransaction(2, 1, 3, 0)]


def test_a_marker_counts_when_it_is_committed(memory_tool, batch, marker):
    log = memory_tool.create()
    log.append_as_leader(
        batch(2, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True), leader_epoch=0, now_ms=0
    )
    log.append_as_leader(batch(1), leader_epoch=0, now_ms=0)
    log.append_as_leader(marker(7, abort=False), leader_epoch=0, now_ms=0)
    for high_watermark, stable in ((1, 0), (2, 0), (3, 0), (4, 4)):
        log.maybe_set_high_watermark(high_watermark)
        assert (log.high_watermark, log.last_stable_offset) == (high_watermark, stable)


def test_the_last_stable_offset_is_not_above_the_high_watermark(memory_tool, batch):
    log = memory_tool.create()
    log.append_as_leader(batch(3), leader_epoch=0, now_ms=0)
    transactional = batch(2, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append_as_leader(transactional, leader_epoch=0, now_ms=0)
    assert log.last_stable_offset == 0
    log.maybe_set_high_watermark(2)
    assert log.last_stable_offset == 2
    log.maybe_set_high_watermark(5)
    assert log.last_stable_offset == 3


def test_the_last_stable_offset_is_not_below_the_log_start_offset(writer):
    writer.write(7, 2)
    writer.plain(4)
    writer.log.delete_records_before(4)
    assert writer.log.last_stable_offset == 4


def test_a_marker_without_a_transaction(writer):
    writer.end(7, abort=True)
    writer.write(7)
    writer.end(7, abort=True)
    writer.end(7, abort=True)
    assert index_of(writer.log) == [AbortedTransaction(7, 1, 2, 3)]
    assert writer.log.last_stable_offset == 4


def test_the_last_stable_offset_of_a_follower(memory_tool, batch, marker):
    log = memory_tool.create(**SMALL)
    parts = []
    for offset in range(0, 40, 4):
        data = batch(
            3, producer_id=7, producer_epoch=0, base_sequence=offset, base_offset=offset, is_transactional=True
        )
        end = marker(7, abort=offset % 8 == 0)
        end.stamp(offset + 3, 0)
        data.stamp(offset, 0)
        parts += [bytes(data.buffer), bytes(end.buffer)]
    log.append_as_follower(b"".join(parts[:-1]), now_ms=NOW_MS)
    assert len(log.segments) > 2
    assert log.last_stable_offset == 0
    log.maybe_set_high_watermark(30)
    assert log.last_stable_offset == 28
    log.maybe_set_high_watermark(39)
    assert log.last_stable_offset == 36
    assert index_of(log) == transactions_in(log)[2] != []
    assert committed(log) == [offset for offset in range(36) if offset % 8 in (4, 5, 6)]


# ------------------------------------------------------------ refused batches


def test_a_batch_outside_of_the_open_transaction_is_refused(writer):
    writer.write(7)
    with pytest.raises(InvalidTxnState):
        writer.write(7, is_transactional=False)
    writer.end(7, abort=False)
    writer.write(7, is_transactional=False)


def test_a_marker_of_an_older_coordinator_is_refused(writer):
    writer.end(7, abort=False, coordinator_epoch=3)
    writer.write(7)
    with pytest.raises(TransactionCoordinatorFenced):
        writer.end(7, abort=True, coordinator_epoch=2)
    assert writer.log.last_stable_offset == 1
    writer.end(7, abort=False, coordinator_epoch=3)
    assert writer.log.last_stable_offset == 3


def test_a_marker_of_an_older_epoch_is_refused(writer, batch, marker):
    writer.append(batch(1, producer_id=7, producer_epoch=2, base_sequence=0, is_transactional=True))
    with pytest.raises(InvalidProducerEpoch):
        writer.append(marker(7, abort=True))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (control_key(ControlRecordType.LEADER_CHANGE), bytes(6)),
        (control_key(ControlRecordType.COMMIT), bytes(5)),
        (control_key(ControlRecordType.COMMIT), b"\xff\xff\0\0\0\0"),
        (control_key(ControlRecordType.COMMIT), None),
        (b"\0\0", bytes(6)),
        (None, bytes(6)),
    ],
)
def test_an_invalid_marker_is_refused(writer, key, value):
    keywords = {"producer_id": 7, "producer_epoch": 0, "is_control": True, "is_transactional": True}
    made = RecordBatch.parse(build_batch([(key, value, NOW_MS)], **keywords))
    with pytest.raises(InvalidRecord):
        writer.append(made)
    with pytest.raises(InvalidRecord):
        writer.log.append_as_follower(bytes(made.buffer), now_ms=NOW_MS)
    assert writer.log.log_end_offset == 0


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
@pytest.mark.parametrize(
    "otherwise",
    [
        {},
        {"compression": Compression.GZIP},
        {"log_append_time_ms": NOW_MS + 5},
        {"value": b"\0\1\0\0\0\x0cmore"},
        {"key": b"\0\1"},
        {"headers": [("a", b"b")]},
        {"epoch": -1},
    ],
)
def test_markers_in_the_usual_and_in_other_forms(kind, otherwise):
    """The form that brokers write is parsed directly, other forms as records."""
    options = dict(otherwise)
    value = options.pop("value", b"\0\0" + options.pop("epoch", 12).to_bytes(4, "big", signed=True))
    key = options.pop("key", b"\0\0") + control_key(kind)[2:]
    record = (key, value, NOW_MS, options.pop("headers", []))
    made = RecordBatch.parse(build_batch([record], producer_id=7, producer_epoch=0, is_control=True, **options))
    (read,) = records_of(made)
    epoch = int.from_bytes(value[2:6], "big", signed=True)
    assert marker_of(made) == (kind is ControlRecordType.ABORT, epoch, read.timestamp)


def test_an_empty_control_batch(memory, writer):
    """Compaction leaves one of a marker whose transaction it has removed."""
    state = ProducerState(memory.files, memory.path)
    empty = RecordBatch.parse(build_batch([], producer_id=7, producer_epoch=0, is_control=True, is_transactional=True))
    assert state.replay(empty) is None
    assert state.entries == {}


# ------------------------------------------------------------ aborted transactions


def test_markers_in_later_segments(writer):
    log = writer.log
    writer.write(7, 2)
    writer.write(8)
    for _ in range(20):
        writer.plain(2)
    writer.end(8, abort=True)
    writer.end(7, abort=True)
    assert len(log.segments) > 3 and len(index_of(log)) == 2
    assert not log.segments[0].transactions.entries
    data = log.read(0, 1, up_to=log.last_stable_offset, minimum_one=True)
    assert [each.producer_id for each in log.aborted_transactions(0, data)] == [7]
    data = log.read(2, 1, up_to=log.last_stable_offset, minimum_one=True)
    assert [each.producer_id for each in log.aborted_transactions(2, data)] == [8, 7]
    assert log.aborted_transactions(log.log_end_offset, b"") == []
    for max_bytes in (1, 100, 300, 1 << 20):
        assert committed(log, max_bytes) == list(range(3, 43))


def test_the_bytes_that_a_marker_makes_readable(writer):
    log = writer.log
    for _ in range(12):
        writer.write(7, 2)
    assert len(log.segments) > 2
    sizes = {batch.base_offset: batch.size_in_bytes for batch in all_batches(log)}
    for start, end in itertools.combinations(range(0, 26, 2), 2):
        expected = sum(size for offset, size in sizes.items() if start <= offset < end)
        assert log.bytes_between(start, end) == expected


def test_an_invalid_index_is_refused(writer, tool):
    writer.write(7)
    writer.end(7, abort=True)
    writer.log.release()
    tool.overwrite(f"{0:020d}.txnindex", b"nonsense")
    with pytest.raises(CorruptMessage, match="txnindex"):
        committed(writer.log)


# ------------------------------------------------------------ after a restart


def busy(writer):
    """Appends transactions, of which 2 (since offset 5) and 3 are open at the end."""
    for round_ in range(8):
        writer.write(1, 2)
        writer.plain()
        writer.write(2)
        writer.write(1)
        if round_ % 3:
            writer.write(3, 2)
            writer.end(3, abort=round_ % 2 == 0)
        writer.end(1, abort=round_ % 2 == 1)
    writer.write(3)


def txn_files(tool):
    return {name: tool.files.read(tool.path(name)) for name in tool.names() if name.endswith(".txnindex")}


@pytest.mark.parametrize(
    ("lost", "clean"),
    # After a clean shutdown nothing reveals a missing .txnindex, unless the .index is missing too.
    [*itertools.product([None, "snapshot", "damaged", "index"], [True, False]), ("txnindex", False)],
)
def test_transactions_survive_a_restart(tool, writer, lost, clean):
    busy(writer)
    log = writer.log
    stable, expected = log.last_stable_offset, index_of(log)
    log.close()
    before = txn_files(tool)
    assert len(before) > 2 and expected == transactions_in(log)[2]
    for name in tool.names():
        if lost == "damaged" and name in before:
            tool.flip(name, 1)
        elif lost is not None and name.endswith(lost):
            tool.files.delete(tool.path(name))
    again = tool.open(clean=clean, recovery_point=0 if not clean else log.log_end_offset, **SMALL)
    assert txn_files(tool) == before
    again.maybe_set_high_watermark(again.log_end_offset)
    assert (again.last_stable_offset, index_of(again)) == (stable, expected)
    assert committed(again) == committed(log)
    later = Writer(again)
    later.sequences = writer.sequences
    later.end(2, abort=True)
    later.end(3, abort=False)
    assert again.last_stable_offset == again.log_end_offset
    assert index_of(again) == transactions_in(again)[2]


def test_a_directory_of_apache_kafka(golden):
    log = golden.open(clean=True, index_interval_bytes=500, segment_bytes=6000)
    before = txn_files(golden)
    log.maybe_set_high_watermark(205)
    # The last record is of a transaction that was open when Apache Kafka shut down.
    assert log.last_stable_offset == 204
    unseen = {*range(180, 186), 191, 192, 193, 194, 195, 196, 197, 203}
    assert [offset for offset in committed(log) if offset >= 180] == [n for n in range(180, 204) if n not in unseen]
    for name in before:
        golden.files.delete(golden.path(name))
    golden.open(clean=False, index_interval_bytes=500, segment_bytes=6000)
    assert txn_files(golden) == before != {}


def test_truncation_reopens_transactions(tool, writer, marker):
    log = writer.log
    writer.write(7, 2)
    writer.plain(2)
    writer.end(7, abort=True)
    writer.plain(3)
    log.truncate_to(4, NOW_MS)
    assert (log.last_stable_offset, index_of(log), txn_files(tool)) == (0, [], {})
    writer.append(marker(7, abort=True))
    assert index_of(log) == [AbortedTransaction(7, 0, 4, 5)]
    log.truncate_to(5, NOW_MS)
    assert log.last_stable_offset == 5
    log.truncate_fully_and_start_at(3)
    assert (log.last_stable_offset, index_of(log), txn_files(tool)) == (3, [], {})
    assert log.active_producers() == []
    writer.plain()
    assert log.last_stable_offset == 4


def test_an_index_is_deleted_with_its_segment(tool, writer):
    busy(writer)
    log = writer.log
    log.update_config(log.config._replace(retention_bytes=0))
    kept = log.segments[-1].base_offset
    log.enforce_retention(NOW_MS)
    assert all(int(name[:20]) >= kept for name in txn_files(tool))


def test_an_index_is_fsynced_with_its_segment():
    files = FaultyFiles()
    tool = Tool(memory_place(files))
    writer = Writer(tool.create())
    writer.write(7)
    writer.end(7, abort=True)
    files.fsync_path("/")
    writer.log.flush()
    assert files.survivor(power_cut=True).sizes(tool.directory)[f"{0:020d}.txnindex"] == 34


@pytest.mark.parametrize("lasting", ["once", "for ever"])
@pytest.mark.parametrize("torn", [0, 1, 50])
def test_a_kill_at_any_operation_keeps_the_index_valid(torn, lasting):
    for n in itertools.count(1):
        files = FaultyFiles(n, torn=torn, lasting=lasting)
        try:
            tool = Tool(memory_place(files))
            writer = Writer(tool.create(**SMALL))
            busy(writer)
            writer.log.truncate_to(writer.log.log_end_offset - 12, NOW_MS)
            writer.log.maybe_set_high_watermark(writer.log.log_end_offset)
            writer.log.close()
        except (KafkaError, OSError):
            assert files.has_failed
        survivor = files.survivor()
        if survivor.exists("/data/orders-3"):
            again = Tool(memory_place(survivor)).open(**SMALL)
            again.maybe_set_high_watermark(again.log_end_offset)
            still_open, _, aborted = transactions_in(again)
            assert index_of(again) == aborted, f"failure at operation {n}, {files.changes[n - 1 :][:1]}"
            assert again.last_stable_offset == min([*still_open, again.log_end_offset])
        if not files.has_failed:
            assert n > 60
            return


class TransactionsBesideAList(RuleBasedStateMachine):
    """Random operations on a log with several transactional producers, compared with its batches."""

    @initialize(segment_bytes=st.sampled_from([300, 800, 1 << 20]), interval=st.sampled_from([0, 200, 4096]))
    def create(self, segment_bytes, interval):
        self.tool = Tool(memory_place(FaultyFiles()))
        self.settings = {"segment_bytes": segment_bytes, "index_interval_bytes": interval, "retention_ms": -1}
        self.log = self.tool.create(**self.settings)

    def sequence_of(self, producer_id):
        written = [
            batch for batch in all_batches(self.log) if batch.producer_id == producer_id and not batch.is_control
        ]
        return written[-1].last_sequence + 1 if written else 0

    def append(self, batch):
        self.log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)

    @rule(producer_id=st.integers(1, 4), count=st.integers(1, 3))
    def write(self, producer_id, count):
        sequence = self.sequence_of(producer_id)
        self.append(
            make_batch(count, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)
        )

    @rule(count=st.integers(1, 3))
    def plain(self, count):
        self.append(make_batch(count))

    @rule(producer_id=st.integers(1, 4), abort=st.booleans())
    def end(self, producer_id, abort):
        self.append(make_marker(producer_id, abort=abort))

    def ends_of_batches(self):
        """Returns the offsets up to which a log may be committed or truncated."""
        ends = [batch.next_offset for batch in all_batches(self.log)]
        return [end for end in ends if end >= self.log.high_watermark] or [self.log.log_end_offset]

    @rule(data=st.data())
    def commit(self, data):
        self.log.maybe_set_high_watermark(data.draw(st.sampled_from(self.ends_of_batches())))

    @rule()
    def roll(self):
        self.log.roll(NOW_MS)

    @precondition(lambda self: self.log.high_watermark < self.log.log_end_offset)
    @rule(data=st.data())
    def truncate(self, data):
        """Truncates to the high watermark or above, as Apache Kafka does."""
        self.log.maybe_set_high_watermark(data.draw(st.sampled_from(self.ends_of_batches())))
        self.log.truncate_to(self.log.high_watermark, NOW_MS)

    @rule(clean=st.booleans(), loses=st.booleans())
    def restart(self, clean, loses):
        self.log.maybe_set_high_watermark(self.log.log_end_offset)
        high_watermark, before = self.log.high_watermark, txn_files(self.tool)
        if clean:
            self.log.close()
        elif loses:
            for name in before:
                self.tool.files.delete(self.tool.path(name))
        recovery_point = 0 if loses else self.log.recovery_point
        self.log = self.tool.open(clean=clean, recovery_point=recovery_point, **self.settings)
        self.log.maybe_set_high_watermark(high_watermark)
        assert txn_files(self.tool) == before

    @invariant()
    def it_is_what_the_batches_say(self):
        log = self.log
        still_open, ended, aborted = transactions_in(log)
        assert index_of(log) == aborted
        unstable = still_open + [first for first, marker in ended if marker >= log.high_watermark]
        assert log.last_stable_offset == min([*unstable, log.high_watermark])

    @rule(max_bytes=st.sampled_from([1, 150, 400, 1 << 20]), share=st.floats(0, 1))
    def read_committed(self, max_bytes, share):
        log = self.log
        offset = round(share * log.last_stable_offset)
        dropped = {(each.producer_id, n) for each in index_of(log) for n in range(each.first_offset, each.last_offset)}
        expected = [
            number
            for batch in all_batches(log)
            if not batch.is_control
            for number in range(batch.base_offset, batch.next_offset)
            if offset <= number < log.last_stable_offset and (batch.producer_id, number) not in dropped
        ]
        assert committed(log, max_bytes, offset) == expected


TestTransactionsBesideAList = TransactionsBesideAList.TestCase
TestTransactionsBesideAList.settings = hypothesis.settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
