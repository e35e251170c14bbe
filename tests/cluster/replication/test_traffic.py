"""The batches, records and bytes that the leader of a partition appends, by the offsets and positions of its log."""

import pytest

from barnabas.errors import OutOfOrderSequenceNumber, UnknownTopicOrPartition
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from tests.cluster.replication.test_partition import ALONE, World, follow

SIZE = len(build_batch([(None, b"v", 0)]))
"""The size of a batch with one record."""


@pytest.fixture
def world():
    """A leader with five batches, in segments of two, of which the last three are counted."""
    world = World(segment_bytes=2 * SIZE + 1, retention_ms=-1, retention_bytes=0, file_delete_delay_ms=0)
    for _ in range(2):
        world.append()
    world.partition.count_traffic()
    for _ in range(3):
        world.append()
    return world


def counted(world):
    """Returns batches, records and bytes up to now."""
    partition = world.partition
    partition.traffic.look()
    return partition.batches, partition.traffic.messages_in, partition.traffic.bytes_in


def test_appends_count_across_segments(world):
    assert len(world.log.segments) == 3
    assert counted(world) == counted(world) == (3, 3, 3 * SIZE)
    size = len(build_batch([(None, b"v", 0)] * 2))
    world.append(2)
    assert counted(world) == (4, 5, 3 * SIZE + size)


def test_deleted_segments_and_records_stay_counted(world):
    assert world.log.enforce_retention(0)
    assert world.log.size == 0
    world.append()
    world.log.delete_records_before(world.log.log_end_offset)
    assert counted(world) == (4, 4, 4 * SIZE)


def test_a_follower_counts_neither_what_it_copies_nor_what_it_truncates(world):
    follow(world.partition)
    world.log.truncate_to(1)
    copied = RecordBatch.parse(build_batch([(None, b"v", 0)] * 2))
    copied.stamp(1, 4)
    world.log.append_as_follower(copied.buffer, now_ms=0)
    assert counted(world) == (3, 3, 3 * SIZE)
    world.partition.become_leader(ALONE._replace(leader_epoch=5))
    world.append()
    world.partition.become_leader(ALONE._replace(leader_epoch=6))
    world.append()
    assert counted(world) == (5, 5, 5 * SIZE)


def test_a_log_that_has_moved_goes_on_counting(world):
    moved = World(segment_bytes=10 * SIZE).log
    for number in range(5):
        batch = RecordBatch.parse(build_batch([(None, b"v", 0)]))
        batch.stamp(number, 3)
        moved.append_as_follower(batch.buffer, now_ms=0)
    world.partition.use_log(moved)
    world.append()
    assert counted(world) == (4, 4, 4 * SIZE)


def test_a_deleted_partition_keeps_its_counts_for_the_last_reader(world):
    world.partition.close(UnknownTopicOrPartition())
    world.log.go_offline("it is deleted")
    assert counted(world) == (3, 3, 3 * SIZE)


def test_duplicates_count_as_in_apache_kafka_and_refused_batches_do_not(world):
    def produced(sequence):
        world.append(producer_id=7, producer_epoch=0, base_sequence=sequence)

    produced(0)
    produced(0)
    with pytest.raises(OutOfOrderSequenceNumber):
        produced(5)
    assert world.log.log_end_offset == 6
    assert counted(world) == (5, 5, 5 * SIZE)
