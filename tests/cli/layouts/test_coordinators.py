"""Records of internal topics: construct's decoding, compared with the wire's, and with records of Apache Kafka."""

import base64
from pathlib import Path

import pytest

from barnabas.cli.layouts import control, declared
from barnabas.cli.layouts.coordinators import (
    DECODERS,
    NotSuchARecord,
    group_record,
    metadata_record,
    share_record,
    transaction_record,
)
from barnabas.records.control import ControlRecordType
from barnabas.wire.messages import control_records, group_records, metadata_records
from barnabas.wire.schema import Struct

APACHE = Path(__file__).parents[2] / "wire/golden/apache"
DECLARED = {
    **{cls.__name__: cls for cls in metadata_records.MetadataRecord.by_key.values()},
    **{cls.__name__: cls for cls in group_records.GroupKey.by_type.values()},
    **{cls.value.__name__: cls.value for cls in group_records.GroupKey.by_type.values()},
}


def plain(value, version, is_uuid=False):
    """Returns a structure of the wire as dictionaries, with UUIDs as text."""
    if isinstance(value, Struct):
        return {
            field.name: plain(getattr(value, field.name), version, getattr(field.kind, "format", "") == "16s")
            for field in value.wire_fields()
            if version in field.versions
        }
    if isinstance(value, list | tuple):
        return [plain(each, version, is_uuid) for each in value]
    if is_uuid and value is not None:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return value


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_bytes_that_apache_kafka_wrote(name):
    cls = DECLARED[name]
    path = APACHE / f"{name}.txt"
    if not path.exists():
        pytest.skip("newer than Apache Kafka 4.3")
    for line in path.read_text().splitlines():
        version, data = int(line.split()[0]), bytes.fromhex(line.split()[1])
        assert declared.read(cls, data, version) == plain(cls.decode(data, version=version), version)


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("LEADER_CHANGE", control_records.LeaderChangeMessage),
        ("SNAPSHOT_HEADER", control_records.SnapshotHeaderRecord),
        ("SNAPSHOT_FOOTER", control_records.SnapshotFooterRecord),
        ("KRAFT_VERSION", control_records.KRaftVersionRecord),
        ("KRAFT_VOTERS", control_records.VotersRecord),
    ],
)
def test_control_records_of_apache_kafka(name, cls):
    results, layout = control.TYPES[ControlRecordType[name]]
    assert results == name
    for line in (APACHE / f"{cls.__name__}.txt").read_text().splitlines():
        version, data = int(line.split()[0]), bytearray.fromhex(line.split()[1])
        data[0:2] = version.to_bytes(2)  # the first field is the version, which is random in the samples
        expected = plain(cls.decode(bytes(data), version=version), version)
        assert control.plain(layout.parse(bytes(data))) == without_defaults(expected, version)


def without_defaults(value, version):
    """Removes the directory of a voter in version 0, which does not have it."""
    if isinstance(value, list):
        return [without_defaults(each, version) for each in value]
    if isinstance(value, dict):
        value = {name: without_defaults(each, version) for name, each in value.items()}
        if list(value) == ["voter_id"]:
            value["voter_directory_id"] = None
    return value


TX_KEY = bytes.fromhex("00000003747831")
TRANSACTION = {
    "producer_id": 9,
    "producer_epoch": 3,
    "transaction_timeout_ms": 60000,
    "transaction_status": "Ongoing",
    "transaction_partitions": [{"topic": "orders", "partition_ids": [0, 7]}],
    "transaction_last_update_timestamp_ms": 5,
    "transaction_start_timestamp_ms": 4,
}


def test_a_transaction_of_version_0():
    value = "0000000000000000000900030000ea60010000000100066f7264657273000000020000000000000007"
    value += "00000000000000050000000000000004"
    key, found = transaction_record(TX_KEY, bytes.fromhex(value))
    assert key == {"type": "TransactionLog", "transactional_id": "tx1"}
    assert found == {"version": 0, **TRANSACTION}
    assert transaction_record(TX_KEY, None) == (key, None)


def test_a_transaction_of_version_1():
    value = "0001000000000000000900030000ea6001000000000000000005000000000000000404000800000000000000080108"
    value += "000000000000000a0202000203020004"
    _, found = transaction_record(TX_KEY, bytes.fromhex(value))
    assert found == {
        "version": 1,
        **TRANSACTION,
        "transaction_partitions": None,
        "previous_producer_id": 8,
        "next_producer_id": 10,
        "client_transaction_version": 2,
        "next_producer_epoch": 4,
    }


def test_share_groups():
    key = "0000000273678b42016d5e4b41e9bb7ad97d79dbc33000000000"
    value = "0000000000000000000200000000ffffffffffffffff000001a1ff3b96b3000001a1ff3b96b30100"
    found_key, found = share_record(bytes.fromhex(key), bytes.fromhex(value))
    assert found_key == {
        "type": "ShareSnapshot",
        "group_id": "sg",
        "topic_id": "i0IBbV5LQem7etl9edvDMA",
        "partition": 0,
    }
    assert found == {
        "version": 0,
        "snapshot_epoch": 0,
        "state_epoch": 2,
        "leader_epoch": 0,
        "start_offset": -1,
        "create_timestamp": 1795283457715,
        "write_timestamp": 1795283457715,
        "state_batches": [],
        "delivery_complete_count": -1,
    }
    value = "00000000000300000002000000000000004d02000000000000004d00000000000000500200040001000400000005"
    found_key, found = share_record(b"\0\x01" + bytes.fromhex(key)[2:], bytes.fromhex(value))
    assert found_key["type"] == "ShareUpdate"
    assert found == {
        "version": 0,
        "snapshot_epoch": 3,
        "leader_epoch": 2,
        "start_offset": 77,
        "state_batches": [{"first_offset": 77, "last_offset": 80, "delivery_state": 2, "delivery_count": 4}],
        "delivery_complete_count": 5,
    }


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("content", [b"", b"\0", b"\x7f\xff", b"\0\x01\xff\xff\xff\xff\xff\xff", b"\x01\x02\x00\xff"])
def test_what_is_no_such_record(kind, content):
    with pytest.raises(NotSuchARecord):
        DECODERS[kind](content, content)


def test_a_key_without_a_value_takes_a_record_away():
    key = group_records.encode_key(group_records.OffsetCommitKey(group="g", topic="t", partition=2))
    assert group_record(key, None) == ({"type": "OffsetCommit", "group": "g", "topic": "t", "partition": 2}, None)


def test_a_metadata_record_with_its_frame():
    record = metadata_records.FenceBrokerRecord(id=300, epoch=2)
    _, found = metadata_record(None, metadata_records.encode_metadata_record(record))
    assert found == {"type": "FenceBrokerRecord", "version": 0, "id": 300, "epoch": 2}
