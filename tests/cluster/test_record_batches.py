import pytest

from barnabas.cluster.quorum.record_batches import (
    MAX_BATCH_BYTES,
    Control,
    control_batch,
    decode_batches,
    encode_batches,
    record_version,
)
from barnabas.errors import CorruptMessage, MalformedMessage
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType
from barnabas.wire.messages.control_records import LeaderChangeMessage
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


def config(value):
    return ConfigRecord(resource_type=2, resource_name="orders", name="x", value=value)


def test_what_apache_wrote_comes_out_of_it_byte_by_byte(golden):
    """Each batch of a metadata log of Apache Kafka, decoded and encoded again."""
    log = golden("log")
    for batch, records in decode_batches(log):
        timestamp, epoch = batch.base_timestamp, batch.partition_leader_epoch
        if batch.is_control:
            (control,) = records
            message = LeaderChangeMessage.decode(control.value, version=0)
            ours = control_batch(
                [(ControlRecordType(control.type), message, 0)],
                timestamp=timestamp, epoch=epoch, base_offset=batch.base_offset,
            )  # fmt: skip
        else:
            (ours,) = encode_batches(
                records, metadata_version=30, timestamp=timestamp, epoch=epoch, base_offset=batch.base_offset
            )
        assert bytes(ours if batch.is_control else ours.data) == bytes(batch.buffer), records


def test_records_that_fit_are_one_batch():
    (batch,) = encode_batches([config("1"), config("2")], metadata_version=30, timestamp=5, epoch=3, base_offset=7)
    (decoded,) = decode_batches(batch.data)
    assert decoded.records == batch.records == [config("1"), config("2")]
    assert (decoded.batch.base_offset, decoded.batch.last_offset, decoded.batch.partition_leader_epoch) == (7, 8, 3)
    assert decoded.batch.base_timestamp == decoded.batch.max_timestamp == 5


def test_no_records_are_no_batch():
    assert list(encode_batches([], metadata_version=30, timestamp=0, epoch=1)) == []


def test_records_that_do_not_fit_are_several_batches():
    records = [config("x" * 3_000_000) for _ in range(7)]
    encoded = list(encode_batches(records, metadata_version=30, timestamp=0, epoch=1, base_offset=10))
    assert len(encoded) == 4
    assert max(len(each.data) for each in encoded) <= MAX_BATCH_BYTES
    decoded = [next(decode_batches(batch.data)) for batch in encoded]
    assert [each.batch.base_offset for each in decoded] == [10, 12, 14, 16]
    assert [record for each in decoded for record in each.records] == records
    assert [record for each in encoded for record in each.records] == records


@pytest.mark.parametrize(
    ("record", "versions"),
    [
        (RegisterBrokerRecord, {30: 4, 29: 3, 17: 3, 16: 2, 8: 2, 7: 1}),
        (PartitionRecord, {30: 2, 23: 2, 22: 1, 17: 1, 16: 0}),
        (PartitionChangeRecord, {30: 2, 23: 2, 22: 1, 17: 1, 16: 0}),
        (TopicRecord, {30: 0, 7: 0}),
    ],
)
def test_the_version_of_a_record_is_one_that_the_cluster_knows(record, versions):
    made = record.__new__(record)
    assert {level: record_version(made, level) for level in versions} == versions


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"fenced": -1}, 0),
        ({"in_controlled_shutdown": 1}, 1),
        ({"log_dirs": [bytes(16)]}, 2),
        ({"cordoned_log_dirs": []}, 3),
    ],
)
def test_a_change_of_a_registration_is_as_old_as_it_can_be(fields, version):
    assert record_version(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, **fields), 30) == version


def test_control_records_come_as_what_they_are():
    change = LeaderChangeMessage(version=0, leader_id=1, voters=[], granting_voters=[])
    batch = control_batch([(ControlRecordType.LEADER_CHANGE, change, 0)], timestamp=1, epoch=4)
    (decoded,) = decode_batches(batch)
    assert decoded.batch.is_control
    assert decoded.records == [Control(ControlRecordType.LEADER_CHANGE, change.encode(version=0))]


def test_damage_is_noticed():
    ((batch, _),) = encode_batches([NoOpRecord()], metadata_version=30, timestamp=0, epoch=1)
    batch[-1] ^= 1
    with pytest.raises(CorruptMessage):
        list(decode_batches(batch))


def test_a_record_that_nobody_knows_is_not_passed_over():
    batch = build_batch([(None, bytes([1, 99, 0]), 0)])
    assert RecordBatch.parse(batch).count == 1
    with pytest.raises(MalformedMessage):
        list(decode_batches(batch))
