"""The metadata log at older feature levels: its records, and the state after a restart."""

import pytest

from barnabas.cluster.controller.commands.features import FeatureUpdate
from barnabas.cluster.controller.commands.nodes import AssignReplicasToDirs, RegisterController
from barnabas.cluster.controller.commands.topics import CreateTopics, NewTopic
from barnabas.cluster.image.image import MIGRATING_DIRECTORY
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.quorum.quorum_state import QuorumState, read_quorum_state
from barnabas.cluster.quorum.record_batches import Control, decode_batches
from barnabas.cluster.quorum.snapshots import KRaftState, decode_snapshot, encode_snapshot
from barnabas.config.endpoints import Endpoint
from barnabas.errors import UnsupportedVersion
from barnabas.records.batch import batches
from barnabas.records.control import ControlRecordType
from barnabas.records.record import records_of
from barnabas.wire.messages import metadata_records
from barnabas.wire.types import read_uvarint
from tests.registering import FEATURES, heartbeat, registration

METADATA, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
CONTROLLER = Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")
HERE, THERE = bytes([1]) * 16, bytes([2]) * 16


def written(metadata):
    """Returns class name and version of each record in the log, without control records."""
    data = metadata.log.read(0, 1 << 20, up_to=metadata.log.log_end_offset, minimum_one=True)
    found = []
    for batch in batches(memoryview(data)):
        for record in () if batch.is_control else records_of(batch):
            _, at = read_uvarint(record.value, 0)
            key, at = read_uvarint(record.value, at)
            version, _ = read_uvarint(record.value, at)
            found.append((metadata_records.MetadataRecord.by_key[key].__name__, version))
    return found


def beat(metadata, **fields):
    epoch = metadata.image.brokers[1].epoch
    metadata.submit(heartbeat(1, epoch, **{"metadata_offset": metadata.image.offset, **fields}))


def make_everything(metadata):
    level = metadata.image.metadata_version
    controller, directories = RegisterController(1, bytes(16), [CONTROLLER], FEATURES), [HERE, THERE]
    if level >= 15:
        metadata.submit(controller)
    else:
        with pytest.raises(UnsupportedVersion):
            metadata.submit(controller)
    metadata.submit(registration(1, log_dirs=directories))  # again, with another directory
    (made,) = metadata.submit(CreateTopics([NewTopic("t", 1, 1)]))
    assignment = AssignReplicasToDirs(1, metadata.image.brokers[1].epoch, [(made.id, 0, THERE)])
    if level >= 17:
        assert metadata.submit(assignment) == [None]
    else:
        with pytest.raises(UnsupportedVersion):
            metadata.submit(assignment)
    beat(metadata, cordoned_log_dirs=[THERE])
    beat(metadata, offline_log_dirs=[HERE])
    beat(metadata, want_shut_down=True)


@pytest.mark.parametrize(
    ("level", "registration", "partition"),
    [
        (7, 1, 0),
        (8, 2, 0),
        (12, 2, 0),
        (14, 2, 0),
        (16, 2, 0),
        (17, 3, 1),
        (22, 3, 1),
        (23, 3, 2),
        (29, 3, 2),
        (30, 4, 2),
    ],
)
def test_only_what_the_level_has_a_place_for_is_written(open_metadata, level, registration, partition):
    metadata = open_metadata.started(features={METADATA: level})
    make_everything(metadata)
    found = written(metadata)
    versions = dict(found)
    assert versions["RegisterBrokerRecord"] == registration
    assert versions["PartitionRecord"] == versions["PartitionChangeRecord"] == partition
    assert ("BeginTransactionRecord" in versions) == (level >= 13)
    assert ("RegisterControllerRecord" in versions) == (level >= 15)
    there = metadata.image.partition("t", 0).directories
    assert there == ((THERE,) if level >= 17 else (MIGRATING_DIRECTORY,))
    changes = {version for name, version in found if name == "BrokerRegistrationChangeRecord"}
    assert changes == {0, 1} | ({3} if level >= 30 else set()) | ({2} if level >= 17 else set())


@pytest.mark.parametrize("level", range(7, 31))
def test_the_image_is_the_one_that_a_restart_reads(open_metadata, level):
    metadata = open_metadata.started(features={METADATA: level})
    make_everything(metadata)
    again = open_metadata()
    assert again.image._replace(offset=0, epoch=0) == metadata.image._replace(offset=0, epoch=0)
    assert again.image.metadata_version == level
    again.snapshots.write_snapshot()
    (snapshot_id,) = again.snapshot_ids()
    records = decode_snapshot(open_metadata.files.read(f"{open_metadata.directory}/{snapshot_id.file_name}")).records
    assert sum(isinstance(record, metadata_records.PartitionRecord) for record in records) == 1
    assert open_metadata().image._replace(offset=0, epoch=0) == metadata.image._replace(offset=0, epoch=0)


def test_directories_are_told_once_the_metadata_has_a_place_for_them(open_metadata):
    metadata = open_metadata.started(features={METADATA: 16})
    metadata.submit(CreateTopics([NewTopic("t", 1, 1)]))
    assert metadata.image.brokers[1].log_dirs == ()
    assert metadata.image.partition("t", 0).directories == (MIGRATING_DIRECTORY,)
    before = metadata.image.brokers[1]
    assert metadata.submit(registration(1)) == before.epoch
    assert metadata.image.brokers[1] == before
    metadata.update_features(FeatureUpdate(METADATA, 17))
    assert metadata.submit(registration(1)) == before.epoch
    assert metadata.image.brokers[1] == before._replace(log_dirs=(HERE,))


# ---------------------------------------------------------------- the first start, and others


def test_given_levels_are_in_the_bootstrap_file(open_metadata):
    metadata = open_metadata(features={"transaction.version": 1, METADATA: 25})
    levels = {METADATA: 25, "group.version": 1, "transaction.version": 1}
    assert metadata.image.features == levels
    data = open_metadata.files.read(
        open_metadata.directory.removesuffix("__cluster_metadata-0") + "bootstrap.checkpoint"
    )
    assert {each.name: each.feature_level for each in decode_snapshot(data).records} == levels


@pytest.mark.parametrize("features", [{"transaction.version": 1}, {METADATA: 25, "group.version": 1}, {ELR: 0}, {}])
def test_the_same_levels_again_are_fine(open_metadata, features):
    levels = open_metadata(features={"transaction.version": 1, METADATA: 25}).image.features
    assert open_metadata(features=features).image.features == levels


@pytest.mark.parametrize("features", [{"transaction.version": 2}, {METADATA: 30}, {"group.version": 0}, {KRAFT: 1}])
def test_other_levels_are_refused_once_there_is_a_cluster(open_metadata, features):
    end = open_metadata.started(features={"transaction.version": 1, METADATA: 25}).log.log_end_offset
    with pytest.raises(MetadataLogError, match="`barnabas features upgrade`"):
        open_metadata(features=features)
    again = open_metadata()
    assert again.image.features["transaction.version"] == 1
    assert again.log.log_end_offset == end + 1  # the leader's record; the refused start has appended none


def test_a_first_start_that_was_cut_short_goes_on_with_the_same_levels(open_metadata):
    """``kraft.version`` is raised after the bootstrap is written, and before any broker registers."""
    features = {"transaction.version": 1, KRAFT: 1}
    open_metadata(features=features)
    again = open_metadata(features=features)
    assert again.kraft.version == 0
    again.update_features(FeatureUpdate(KRAFT, 1))
    assert open_metadata(features=features).kraft.version == 1


def test_a_directory_that_was_formatted_and_never_used_has_its_levels(open_metadata, opener):
    open_metadata(features={"transaction.version": 1})
    path = open_metadata.directory.removesuffix("__cluster_metadata-0") + "bootstrap.checkpoint"
    formatted = open_metadata.files.read(path)

    def fresh():
        other = opener(type(open_metadata.files)())
        other.files.makedirs("/data")
        other.files.write_atomically(path, formatted, sync=True)
        return other

    assert fresh()().image.features["transaction.version"] == 1
    assert fresh()(features={"transaction.version": 1}).image.features["transaction.version"] == 1
    with pytest.raises(MetadataLogError, match=r"transaction\.version is at level 1, not 2"):
        fresh()(features={"transaction.version": 2})


def test_a_bootstrap_file_that_cannot_be_used(open_metadata):
    path = open_metadata.directory.removesuffix("__cluster_metadata-0") + "bootstrap.checkpoint"
    records = [metadata_records.FeatureLevelRecord(name="group.version", feature_level=1)]
    without = encode_snapshot(records, kraft=KRaftState(), metadata_version=30, epoch=0, last_timestamp=0, now_ms=0)
    for data, said in ((without, f"{path}: metadata.version is not among"), (without[:-1], f"{path}: a snapshot with")):
        open_metadata.files.makedirs("/data")
        open_metadata.files.write_atomically(path, data, sync=True)
        for _ in range(2):  # the next start is refused, too
            with pytest.raises(MetadataLogError, match=said):
                open_metadata()


def test_levels_are_there_after_a_restart(open_metadata):
    metadata = open_metadata.started()
    metadata.update_features(FeatureUpdate("transaction.version", 1, 2), FeatureUpdate("share.version", 0, 2))
    levels = metadata.image.features
    assert levels["transaction.version"] == 1
    assert "share.version" not in levels
    assert open_metadata().image.features == levels


# ---------------------------------------------------------------- kraft.version


def test_kraft_version_is_raised_by_control_records(open_metadata):
    metadata = open_metadata.started(directory_id=HERE)
    metadata.quorum.voter_endpoints = [CONTROLLER]
    assert metadata.quorum.voter_directory_id == bytes(16)
    start = metadata.log.log_end_offset
    metadata.update_features(FeatureUpdate(KRAFT, 1), FeatureUpdate("transaction.version", 1, 2))
    assert metadata.quorum.voter_directory_id == HERE
    data = metadata.log.read(start, 1 << 20, up_to=metadata.log.log_end_offset, minimum_one=True)
    raised, others = decode_batches(data)
    assert [each.type for each in raised.records] == [ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS]
    assert not any(isinstance(each, Control) for each in others.records)
    assert metadata.image.offset == metadata.log.log_end_offset - 1
    (voter,) = metadata.kraft.voters.voters
    assert (voter.voter_id, voter.voter_directory_id) == (1, HERE)
    assert [(each.name, each.host, each.port) for each in voter.endpoints] == [("CONTROLLER", "127.0.0.1", 9093)]


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_raised_kraft_version_stays(open_metadata, snapshot):
    metadata = open_metadata.started(directory_id=HERE)
    metadata.update_features(FeatureUpdate(KRAFT, 1))
    if snapshot:
        metadata.snapshots.write_snapshot()
    again = open_metadata(features={KRAFT: 1}, directory_id=HERE)
    assert again.kraft == metadata.kraft
    state = read_quorum_state(open_metadata.files, f"{open_metadata.directory}/quorum-state")
    assert state == QuorumState(1, 2, None)
    with pytest.raises(MetadataLogError, match=r"kraft\.version is at level 1"):
        open_metadata(features={KRAFT: 0})


def test_a_validation_does_not_raise_it(open_metadata):
    metadata = open_metadata.started()
    end = metadata.log.log_end_offset
    metadata.update_features(FeatureUpdate(KRAFT, 1), validate_only=True)
    assert (metadata.kraft.version, metadata.log.log_end_offset) == (0, end)
