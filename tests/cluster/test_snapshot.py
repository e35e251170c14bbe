import pytest

from barnabas.cluster.controller.commands.configs import ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.cluster.controller.commands.nodes import AllocateProducerIds, RegisterController
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.cluster.controller.feature_decisions import bootstrap_records
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.image.records import records_of_image
from barnabas.cluster.quorum.record_batches import decode_batches, encode_batches
from barnabas.cluster.quorum.snapshots import (
    KRaftState,
    SnapshotId,
    control_records,
    decode_snapshot,
    encode_snapshot,
    parse_file_name,
)
from barnabas.errors import CorruptMessage
from barnabas.wire.messages.metadata_records import (
    AccessControlEntryRecord,
    PartitionChangeRecord,
    UserScramCredentialRecord,
)
from tests.registering import FEATURES


def encoded(records, kraft=None, **fields):
    values = {"metadata_version": 30, "epoch": 3, "last_timestamp": 77, "now_ms": 88} | fields
    return encode_snapshot(records, kraft=kraft or KRaftState(), **values)


@pytest.mark.parametrize(
    "name", ["00000000000000000465-0000000010.checkpoint", "00000000000000000000-0000000000.checkpoint"]
)
def test_file_names(name):
    assert parse_file_name(name).file_name == name


def test_snapshots_are_in_order_of_their_offsets():
    assert parse_file_name("00000000000000000465-0000000010.checkpoint") == SnapshotId(465, 10)
    assert SnapshotId(9, 8) < SnapshotId(10, 1) < SnapshotId(10, 2)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "bootstrap.checkpoint",
        "00000000000000000465.log",
        "leader-epoch-checkpoint",
        "quorum-state",
        "00000000000000000465-0000000010.checkpoint.part",
        "00000000000000000465-0000000010.checkpoint.tmp",
        "-1.checkpoint",
    ],
)
def test_other_files(name):
    assert parse_file_name(name) is None


def test_what_kafka_formats_a_directory_with_is_what_we_do(golden):
    """The feature levels, and the bytes of their batch."""
    theirs = golden("bootstrap.checkpoint")
    assert decode_snapshot(theirs).records == bootstrap_records()
    _, (batch, _), _ = decode_batches(theirs)
    (ours,) = encode_batches(
        bootstrap_records(), metadata_version=30, timestamp=batch.base_timestamp, epoch=0, base_offset=1
    )
    assert bytes(ours.data) == bytes(batch.buffer)


def test_a_snapshot_of_ours_has_the_layout_of_theirs(golden):
    theirs, ours = golden("bootstrap.checkpoint"), encoded(bootstrap_records(), epoch=0, last_timestamp=0)

    def layout(data):
        return [
            (batch.base_offset, batch.count, batch.batch_length, batch.attributes, batch.partition_leader_epoch)
            for batch, _ in decode_batches(data)
        ]

    assert layout(ours) == layout(theirs)


def test_voters_are_kept(golden):
    found = decode_snapshot(golden("voters.checkpoint"))
    assert found.kraft.version == 1
    (voter,) = found.kraft.voters.voters
    assert (voter.voter_id, voter.endpoints[0].name) == (1, "CONTROLLER")
    again = decode_snapshot(encoded([], kraft=found.kraft))
    assert again.kraft == found.kraft
    assert len(control_records(found.kraft)) == 2
    assert control_records(KRaftState()) == []


def test_an_image_comes_back(make_cluster):
    cluster = make_cluster(brokers=(1, 2))
    cluster.create(NewTopic("orders", 3, 2, configs=[("retention.ms", "1")]), NewTopic("others", 1, 1))
    change = PartitionChangeRecord(
        partition_id=1, topic_id=cluster.topic("orders").id, leader=-1, isr=[], eligible_leader_replicas=[1],
        last_known_elr=[2], leader_recovery_state=1, adding_replicas=[2], removing_replicas=[1],
    )  # fmt: skip
    cluster.apply([change])
    cluster.submit(AllocateProducerIds(1, cluster.image.brokers[1].epoch))
    endpoints = cluster.image.brokers[1].endpoints.values()
    cluster.submit(RegisterController(1, bytes([5]) * 16, endpoints, FEATURES))
    changes = [ConfigChange("log.retention.ms", 0, "5")]
    cluster.submit(IncrementalAlterConfigs([(ConfigResource(4, "1"), changes)]))
    acl = AccessControlEntryRecord(
        id=bytes([4]) * 16, resource_type=2, resource_name="orders", pattern_type=3, principal="User:a", host="*",
        operation=3, permission_type=3,
    )  # fmt: skip
    scram = UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    cluster.apply([acl, scram])
    image = cluster.image

    found = decode_snapshot(encoded(records_of_image(image)))
    again, _ = MetadataImage().apply(found.records, offset=image.offset, epoch=image.epoch)
    assert again == image
    assert found.timestamp == 77


def test_nothing_is_a_snapshot_too():
    assert decode_snapshot(encoded([])).records == []


def test_one_that_was_not_finished_is_refused(golden):
    whole = encoded(bootstrap_records())
    for size in range(len(whole)):
        with pytest.raises(CorruptMessage):
            decode_snapshot(whole[:size])


def test_a_flipped_bit_is_noticed():
    whole = bytearray(encoded(bootstrap_records()))
    offsets = [batch.size_in_bytes for batch, _ in decode_batches(bytes(whole))]
    outside_crc = {at for start in (0, offsets[0], sum(offsets[:2])) for at in range(start, start + 21)}
    for at in set(range(len(whole))) - outside_crc:
        whole[at] ^= 4
        with pytest.raises(CorruptMessage):
            decode_snapshot(bytes(whole))
        whole[at] ^= 4
