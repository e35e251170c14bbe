"""Fetch with read_committed: the last stable offset, aborted transactions in the response, and the end of waits."""

import struct

import pytest

from barnabas.errors import CorruptMessage
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key
from tests.api_handlers.test_fetch import answered, offsets_in, only, requested, send

COMMITTED = 1


@pytest.fixture
def partition(node):
    return node.create_topic("t")


@pytest.fixture
def write(node, partition):
    """Writes one record in the open transaction of a producer."""
    sequences = {}

    def one(producer_id):
        sequence = sequences[producer_id] = sequences.get(producer_id, -1) + 1
        node.append(
            partition, 0, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
        )

    return one


@pytest.fixture
def end(node, partition):
    def marker(producer_id, *, abort):
        key = control_key(ControlRecordType.ABORT if abort else ControlRecordType.COMMIT)
        batch = build_batch(
            [(key, struct.pack(">hi", 0, 0), 0)],
            producer_id=producer_id,
            producer_epoch=0,
            is_control=True,
            is_transactional=True,
        )
        partition.append(RecordBatch.parse(batch), node.clock.time_ms())

    return marker


def committed(offset, **fields):
    return requested([offset], isolation_level=COMMITTED, **fields)


def summary(partition):
    aborted = partition.aborted_transactions
    aborted = None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted]
    return offsets_in(partition), aborted, partition.last_stable_offset, partition.high_watermark


def test_committed_records_end_where_a_transaction_is_open(node, partition, write):
    node.append(partition, 0)
    write(7)
    node.append(partition, 0)
    assert summary(only(answered(send(node, committed(0))))) == ([0], [], 1, 3)
    assert summary(only(answered(send(node, committed(1))))) == ([], [], 1, 3)
    assert summary(only(answered(send(node, committed(2))))) == ([], [], 1, 3)
    assert summary(only(answered(send(node, requested([0]))))) == ([0, 1, 2], None, 1, 3)
    assert only(answered(send(node, committed(4)))).error_code == 1


def test_what_was_aborted_is_named(node, partition, write, end):
    write(7)
    write(8)
    end(7, abort=True)
    write(7)
    end(8, abort=False)
    end(7, abort=True)
    assert summary(only(answered(send(node, committed(0))))) == ([0, 1, 2, 3, 4, 5], [(7, 0), (7, 3)], 6, 6)
    assert summary(only(answered(send(node, committed(0, partition_max_bytes=1))))) == ([0], [(7, 0)], 6, 6)
    assert summary(only(answered(send(node, committed(1, partition_max_bytes=1))))) == ([1], [(7, 0)], 6, 6)
    assert summary(only(answered(send(node, committed(3, partition_max_bytes=1))))) == ([3], [(7, 3)], 6, 6)
    assert summary(only(answered(send(node, committed(6))))) == ([], [], 6, 6)
    assert summary(only(answered(send(node, requested([0]))))) == ([0, 1, 2, 3, 4, 5], None, 6, 6)


def test_an_index_that_cannot_be_read_is_an_error(node, partition, write, end):
    write(7)
    end(7, abort=True)
    partition.log.release()
    node.files.create(f"{partition.log.directory}/{0:020d}.txnindex").write(b"nonsense")
    assert only(answered(send(node, committed(0)))).error_code == CorruptMessage.code
    assert offsets_in(only(answered(send(node, requested([0]))))) == [0, 1]


def test_the_end_of_a_transaction_ends_the_waiting(node, partition, write, end):
    later = send(node, committed(0, max_wait_ms=500))
    write(7)
    node.append(partition, 0)
    node.clock.advance(0)
    assert later.response is None
    end(7, abort=True)
    node.clock.advance(0)
    assert summary(only(answered(later.response))) == ([0, 1, 2], [(7, 0)], 3, 3)


def test_without_transactions_an_append_ends_it(node, partition):
    later = send(node, committed(0, max_wait_ms=500))
    node.append(partition, 0)
    node.clock.advance(0)
    assert summary(only(answered(later.response))) == ([0], [], 1, 1)


@pytest.mark.parametrize("enough", [True, False])
def test_what_becomes_readable_is_counted(node, partition, write, end, enough):
    """Appended records of open transactions are not counted."""
    node.append(partition, 0)
    write(8)
    node.append(partition, 0)
    write(7)
    sizes = [len(only(answered(send(node, requested([offset])))).records) for offset in range(4)]
    readable = sizes[1] - sizes[3]  # offsets 1 and 2
    later = send(node, committed(1, max_wait_ms=500, min_bytes=readable if enough else readable + 1))
    end(8, abort=False)
    node.append(partition, 0)
    node.clock.advance(0.1)
    assert (later.response is not None) == enough
    node.clock.advance(0.4)
    assert offsets_in(only(answered(later.response))) == [1, 2]


def test_the_waiting_ends_when_the_partition_goes(node, partition):
    later = send(node, committed(0, max_wait_ms=500))
    partition.become_leader(partition.image._replace(leader_epoch=partition.leader_epoch + 1))
    node.clock.advance(0)
    assert summary(only(answered(later.response))) == ([], [], 0, 0)


def test_nobody_is_told_after_the_waiting(node, partition, monkeypatch):
    later = send(node, committed(0, max_wait_ms=500))
    node.clock.advance(0.5)
    assert summary(only(answered(later.response))) == ([], [], 0, 0)
    monkeypatch.setattr(type(later), "resolve", lambda later, response: pytest.fail("answered twice"))
    node.append(partition, 0)
    node.clock.advance(1)
