import itertools
import logging

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.controller.bootstrap import FILE_NAME as BOOTSTRAP_FILE
from barnabas.cluster.controller.commands.nodes import AllocateProducerIds
from barnabas.cluster.controller.commands.topics import CreateTopics, DeleteTopics, NewTopic
from barnabas.cluster.image.snapshot_generator import LONG_TO_READ, SnapshotLimits
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.metadata_log import MetadataLogError, Retention
from barnabas.cluster.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from barnabas.cluster.quorum.record_batches import decode_batches, encode_batches
from barnabas.cluster.quorum.snapshots import SnapshotId, decode_snapshot
from barnabas.cluster.quorum.sole_voter import SoleVoter
from barnabas.errors import KafkaStorageError
from barnabas.log.files import MemoryFiles
from barnabas.log.partition_log import LogServices
from barnabas.records.batch import RecordBatch
from barnabas.testing.faults import FaultyFiles
from barnabas.wire.messages.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.registering import heartbeat, registration

QUORUM_STATE = "/data/__cluster_metadata-0/quorum-state"


def same(image, other):
    """Returns whether two images are equal except for their position in the log."""
    return image._replace(offset=0, epoch=0) == other._replace(offset=0, epoch=0)


def create(metadata, *names, partitions=1, **configs):
    results = metadata.submit(
        CreateTopics([NewTopic(name, partitions, 1, configs=list(configs.items())) for name in names])
    )
    assert not any(result.error for result in results), results


def topics(metadata):
    return set(metadata.image.topics_by_name)


def logged(metadata):
    """Returns the content of the log: offset and epoch of each batch, and its records."""
    log, found = metadata.log, []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True)
        for batch, records in decode_batches(piece):
            found.append((batch.base_offset, batch.partition_leader_epoch, records))
            offset = batch.next_offset
    return found


def write(metadata, records):
    """Writes records to the log, without the controller."""
    version = metadata.image.metadata_version
    for batch, _ in encode_batches(records, metadata_version=version, timestamp=0, epoch=metadata.epoch):
        metadata.log.append_as_leader(RecordBatch.parse(batch), leader_epoch=metadata.epoch, now_ms=0)


# ---------------------------------------------------------------- a new cluster


def test_a_new_log_becomes_that_of_a_new_cluster(open_metadata):
    metadata = open_metadata()
    assert metadata.image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert metadata.image.configs_of(4, "") == {"min.insync.replicas": "1"}
    assert (metadata.epoch, metadata.image.epoch) == (1, 1)
    assert metadata.image.offset == metadata.log.log_end_offset - 1 == 9


def test_its_first_batches_are_apaches(open_metadata, golden):
    """The leader's first record and the bootstrap transaction, byte by byte except for the times and the CRCs."""
    metadata = open_metadata()
    ours = metadata.log.read(0, 1 << 20, up_to=10, minimum_one=True)
    theirs = bytearray(golden("log")[: len(ours)])
    for batch, _ in list(decode_batches(bytes(theirs))):
        at = theirs.find(bytes(batch.buffer))
        theirs[at + 17 : at + 21] = bytes(ours[at + 17 : at + 21])  # crc
        theirs[at + 27 : at + 43] = bytes(ours[at + 27 : at + 43])  # timestamps
    assert ours == bytes(theirs)


def test_the_directory_is_formatted_as_kafka_storage_does(open_metadata, golden):
    open_metadata()
    ours = decode_snapshot(open_metadata.files.read(f"/data/{BOOTSTRAP_FILE}"))
    assert ours.records == decode_snapshot(golden("bootstrap.checkpoint")).records
    assert read_quorum_state(open_metadata.files, QUORUM_STATE) == QuorumState(1, 1, (1,))


def test_a_directory_that_was_formatted_keeps_its_levels(open_metadata, golden):
    open_metadata.files.makedirs("/data")
    formatted = golden("bootstrap.checkpoint").replace(b"group.version\0\1", b"group.version\0\0")
    batch = RecordBatch.parse(bytearray(formatted), 83)
    from crc32c import crc32c

    crc = crc32c(bytes(batch.buffer)[21:]).to_bytes(4, "big")
    formatted = formatted[: 83 + 17] + crc + formatted[83 + 21 :]
    open_metadata.files.write_atomically(f"/data/{BOOTSTRAP_FILE}", formatted, sync=False)
    assert "group.version" not in open_metadata().image.features


def test_the_brokers_setting_becomes_the_clusters(open_metadata):
    metadata = open_metadata(settings={"min.insync.replicas": "2"})
    assert metadata.image.configs_of(4, "") == {"min.insync.replicas": "2"}


# ---------------------------------------------------------------- opening again


def test_it_is_all_there_after_a_stop(open_metadata):
    metadata = open_metadata.started()
    create(metadata, "orders", "gone", partitions=3, **{"retention.ms": "5"})
    metadata.submit(DeleteTopics([("gone", bytes(16))]))
    metadata.submit(AllocateProducerIds(1, metadata.image.brokers[1].epoch))
    before = metadata.image
    metadata.log.close()
    again = open_metadata(clean=True)
    assert same(again.image, before)
    assert again.image.next_producer_id == 1000


def test_it_is_all_there_without_a_stop(open_metadata):
    metadata = open_metadata.started()
    create(metadata, "orders")
    assert same(open_metadata().image, metadata.image)


def test_each_start_is_an_epoch(open_metadata):
    assert [open_metadata().epoch for _ in range(3)] == [1, 2, 3]
    assert [(offset, epoch) for offset, epoch, _ in logged(open_metadata())] == [
        (0, 1),
        (1, 1),
        (10, 2),
        (11, 3),
        (12, 4),
    ]
    assert read_quorum_state(open_metadata.files, QUORUM_STATE).leader_epoch == 4


def test_an_epoch_that_was_written_down_is_not_used_again(open_metadata):
    open_metadata()
    write_quorum_state(open_metadata.files, QUORUM_STATE, QuorumState(1, 40, (1,)))
    assert open_metadata().epoch == 41


def test_the_bootstrap_file_is_read_once(open_metadata):
    open_metadata()
    open_metadata.files.delete(f"/data/{BOOTSTRAP_FILE}")
    open_metadata()
    assert not open_metadata.files.exists(f"/data/{BOOTSTRAP_FILE}")


# ---------------------------------------------------------------- what Apache left


@pytest.fixture
def apaches(open_metadata, golden):
    files = open_metadata.files
    files.makedirs(open_metadata.directory)
    files.create(f"{open_metadata.directory}/00000000000000000000.log").write(golden("log"))
    return open_metadata


def test_apaches_log_is_read(apaches):
    image = apaches().image
    assert topics_of(image) == {"orders": 3}
    assert image.configs_of(2, "orders") == {"min.insync.replicas": "1", "retention.ms": "1000"}
    assert image.configs_of(4, "") == {"min.insync.replicas": "1", "log.retention.ms": "5000"}
    assert image.next_producer_id == 1000
    assert image.brokers[1].fenced
    assert image.epoch == 2


def topics_of(image):
    return {name: len(topic.partitions) for name, topic in image.topics_by_name.items()}


@pytest.mark.parametrize("was_clean", [True, False])
def test_partitions_that_a_clean_stop_left_without_a_leader_get_it_back(apaches, was_clean):
    metadata = apaches()
    left = metadata.image.brokers[1]
    assert {each.leader for each in metadata.image.topics_by_name["orders"].partitions.values()} == {-1}
    previous_epoch = left.epoch if was_clean else -1
    again = registration(1, 3, left.endpoints.values(), log_dirs=left.log_dirs, previous_epoch=previous_epoch)
    metadata.submit(heartbeat(1, metadata.submit(again), metadata_offset=metadata.image.offset))
    for partition in metadata.image.topics_by_name["orders"].partitions.values():
        assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (1, (1,), (), ())
        assert partition.leader_epoch == 2
    assert not metadata.image.brokers[1].in_controlled_shutdown


def test_voters_that_are_in_a_snapshot_go_into_the_log(open_metadata, golden):
    """In a directory formatted by ``kafka-storage format --standalone`` (KIP-853)."""
    files = open_metadata.files
    files.makedirs(open_metadata.directory)
    name = SnapshotId(0, 0).file_name
    files.write_atomically(f"{open_metadata.directory}/{name}", golden("voters.checkpoint"), sync=False)
    metadata = open_metadata(directory_id=bytes([7]) * 16)
    (_, _, records), *_ = logged(metadata)
    assert [record.type for record in records] == [2, 5, 6]
    assert metadata.quorum.voter_directory_id == bytes([7]) * 16
    assert read_quorum_state(files, QUORUM_STATE) == QuorumState(1, 1, None)
    files.delete(f"{open_metadata.directory}/{name}")
    assert open_metadata().quorum.kraft == metadata.quorum.kraft
    *_, (_, _, records) = logged(open_metadata())
    assert [record.type for record in records] == [2]
    with pytest.raises(MetadataLogError, match="vote"):
        open_metadata(node_id=2)


def test_an_epoch_that_cannot_be_read_is_not_guessed(open_metadata):
    open_metadata()
    open_metadata.files.write_atomically(QUORUM_STATE, b"", sync=False)
    with pytest.raises(MetadataLogError, match="quorum-state"):
        open_metadata()


def test_a_directory_of_a_quorum_of_several_is_refused(open_metadata):
    open_metadata()
    write_quorum_state(open_metadata.files, QUORUM_STATE, QuorumState(1, 1, (1, 2, 3)))
    with pytest.raises(MetadataLogError, match="vote"):
        open_metadata()


@pytest.mark.parametrize(
    "record",
    [
        FeatureLevelRecord(name="metadata.version", feature_level=31),
        FeatureLevelRecord(name="group.version", feature_level=2),
        FeatureLevelRecord(name="flying.version", feature_level=1),
    ],
)
def test_a_cluster_that_is_ahead_of_us_is_refused(open_metadata, record):
    metadata = open_metadata()
    write(metadata, [record])
    with pytest.raises(MetadataLogError, match=record.name):
        open_metadata()


def test_a_log_that_makes_no_sense_is_refused(open_metadata):
    metadata = open_metadata()
    write(metadata, [RemoveTopicRecord(topic_id=bytes([1]) * 16)])
    with pytest.raises(MetadataLogError, match="understood"):
        open_metadata()


# ---------------------------------------------------------------- changing


def test_a_change_is_in_the_log_then_in_the_image_then_returned(open_metadata):
    metadata = open_metadata.started()
    results = []

    def listener(image, delta):
        assert image is metadata.image
        assert image.offset == metadata.log.log_end_offset - 1
        assert metadata.log.high_watermark == metadata.log.log_end_offset
        results.append([topic.name for topic in delta.new_topics.values()])

    metadata.loader.publishers.append(listener)
    create(metadata, "orders")
    assert results == [["orders"]]


def test_what_changes_nothing_is_told_to_nobody(open_metadata):
    metadata = open_metadata.started()
    metadata.loader.publishers.append(pytest.fail)
    end = metadata.log.log_end_offset
    metadata.submit(DeleteTopics([("nope", bytes(16))]))
    metadata.submit(CreateTopics([NewTopic("orders", 1, 1)], validate_only=True))
    assert metadata.log.log_end_offset == end


def test_each_change_is_to_be_flushed(open_metadata):
    assert open_metadata().log.config.flush_messages == 1


def test_a_broker_epoch_is_an_offset_of_the_log(open_metadata):
    metadata = open_metadata.started()
    epoch = metadata.image.brokers[1].epoch
    (offset,) = [offset for offset, _, records in logged(metadata) if isinstance(records[0], RegisterBrokerRecord)]
    assert offset == epoch


def test_one_command_is_one_batch(open_metadata):
    metadata = open_metadata.started()
    create(metadata, "a", "b", partitions=2)
    *_, (_, _, records) = logged(metadata)
    assert len(records) == 6


def test_what_does_not_fit_into_a_batch_is_a_transaction(open_metadata, monkeypatch):
    metadata = open_metadata.started()
    create(metadata, "small")
    monkeypatch.setattr("barnabas.cluster.quorum.record_batches.MAX_BATCH_BYTES", 1500)
    create(metadata, "a", "b", partitions=4)
    *_, (_, _, first), (_, _, last) = logged(metadata)
    assert isinstance(first[0], BeginTransactionRecord)
    assert isinstance(last[-1], EndTransactionRecord)
    assert same(open_metadata().image, metadata.image)


def test_a_transaction_that_was_not_finished_never_was(open_metadata, caplog):
    metadata = open_metadata.started()
    unfinished = [BeginTransactionRecord(name="x"), TopicRecord(name="lost", topic_id=bytes([1]) * 16)]
    write(metadata, unfinished)
    with caplog.at_level(logging.WARNING):
        again = open_metadata()
    assert "transaction" in caplog.text
    create(again, "orders")
    assert topics(again) == topics(open_metadata()) == {"orders"}


# ---------------------------------------------------------------- snapshots


def test_a_snapshot_stands_for_what_is_before_it(open_metadata):
    metadata = open_metadata.started()
    create(metadata, "orders", partitions=2, **{"retention.ms": "5"})
    snapshot_id = metadata.snapshots.write_snapshot()
    assert snapshot_id == (metadata.log.log_end_offset, metadata.epoch)
    create(metadata, "later")
    again = open_metadata()
    assert same(again.image, metadata.image)


def test_the_log_before_a_snapshot_need_not_be_there(open_metadata):
    metadata = open_metadata.started()
    create(metadata, "orders")
    snapshot_id = metadata.snapshots.write_snapshot()
    create(metadata, "later")
    metadata.log.delete_records_before(snapshot_id.end_offset)
    metadata.log.close()
    files = open_metadata.files
    files.write_atomically(
        "/data/log-start-offset-checkpoint",
        b"0\n1\n__cluster_metadata 0 %d\n" % snapshot_id.end_offset,
        sync=False,
    )
    again = open_metadata(clean=True)
    assert same(again.image, metadata.image)


def test_a_snapshot_is_due_by_size(open_metadata):
    metadata = open_metadata.started(limits=SnapshotLimits(bytes=2000))
    for n in range(40):
        create(metadata, f"t{n}")
    assert 2 <= len(metadata.snapshot_ids()) <= 10
    assert same(open_metadata().image, metadata.image)


def test_a_start_that_had_much_to_read_spares_the_next_one(open_metadata):
    metadata = open_metadata.started()
    metadata.snapshots.spare_the_next_start()
    assert metadata.snapshot_ids() == []
    metadata.submit(CreateTopics([NewTopic("orders", 9000, 1)]))
    assert metadata.log.size < LONG_TO_READ
    epoch = metadata.image.brokers[1].epoch
    metadata.submit(heartbeat(1, epoch, metadata_offset=metadata.image.offset, want_shut_down=True))
    metadata = open_metadata.started()
    assert metadata.log.size > LONG_TO_READ
    metadata.snapshots.spare_the_next_start()
    assert len(metadata.snapshot_ids()) == 1
    again = open_metadata.started()
    again.snapshots.spare_the_next_start()
    assert len(again.snapshot_ids()) == 1
    assert len(again.image.topics_by_name["orders"].partitions) == 9000


def test_a_snapshot_is_due_by_time(open_metadata):
    metadata = open_metadata.started(limits=SnapshotLimits(ms=1000))
    create(metadata, "a")
    assert metadata.snapshot_ids() == []
    open_metadata.clock.advance(2)
    create(metadata, "b")
    assert len(metadata.snapshot_ids()) == 1
    create(metadata, "c")
    assert len(metadata.snapshot_ids()) == 1


def test_what_snapshots_stand_for_goes_when_it_is_too_much(open_metadata):
    limits = SnapshotLimits(bytes=1500)
    metadata = open_metadata.started(limits=limits, retention=Retention(bytes=6000), segment_bytes=1 << 12)
    for n in range(120):
        create(metadata, f"t{n}")
        if n % 3:
            metadata.submit(DeleteTopics([(f"t{n}", bytes(16))]))
    snapshots = sorted(metadata.snapshot_ids())
    assert snapshots[0].end_offset <= metadata.log.log_start_offset
    assert metadata.log.log_start_offset > 0
    assert metadata.log.size < 20_000
    again = open_metadata(segment_bytes=1 << 12)
    assert same(again.image, metadata.image)


def test_what_snapshots_stand_for_goes_when_it_is_too_old(open_metadata):
    metadata = open_metadata.started(retention=Retention(ms=10_000))
    create(metadata, "a")
    first = metadata.snapshots.write_snapshot()
    create(metadata, "b")
    second = metadata.snapshots.write_snapshot()
    assert sorted(metadata.snapshot_ids()) == [first, second]
    open_metadata.clock.advance(10**9)
    create(metadata, "c")
    third = metadata.snapshots.write_snapshot()
    assert first not in metadata.snapshot_ids()
    assert {second, third} >= set(metadata.snapshot_ids())
    assert same(open_metadata().image, metadata.image)


class Postponed:
    """Holds back the work until the test runs it."""

    def __init__(self):
        self.work = []

    def run(self, work, done=None):
        self.work.append((work, done))

    def go_on(self):
        for work, done in self.work:
            try:
                work()
            except OSError as error:
                done(error)
            else:
                done(None)


def test_a_snapshot_is_of_the_moment_of_the_call(open_metadata):
    background = Postponed()
    metadata = open_metadata.started(background=background)
    create(metadata, "orders")
    snapshot_id = metadata.snapshots.write_snapshot()
    create(metadata, "later")
    assert metadata.snapshot_ids() == []
    background.go_on()
    assert metadata.snapshot_ids() == [snapshot_id]
    assert metadata.log.recovery_point >= snapshot_id.end_offset
    name = f"{open_metadata.directory}/{snapshot_id.file_name}"
    records = decode_snapshot(open_metadata.files.read(name)).records
    assert [record.name for record in records if type(record) is TopicRecord] == ["orders"]


def test_a_snapshot_that_cannot_be_written_is_said_so(open_metadata, caplog, monkeypatch):
    background = Postponed()
    metadata = open_metadata.started(background=background)
    snapshot_id = metadata.snapshots.write_snapshot()

    def full(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(open_metadata.files, "write_atomically", full)
    background.go_on()
    assert snapshot_id.file_name in caplog.text
    create(metadata, "orders")


def test_a_damaged_snapshot_is_passed_over(open_metadata, caplog):
    metadata = open_metadata.started()
    create(metadata, "orders")
    metadata.snapshots.write_snapshot()
    create(metadata, "later")
    path = f"{open_metadata.directory}/{metadata.snapshots.write_snapshot().file_name}"
    open_metadata.files.write_atomically(path, open_metadata.files.read(path)[:-1], sync=False)
    again = open_metadata()
    assert same(again.image, metadata.image)
    assert path.rpartition("/")[2] in caplog.text


def test_a_log_without_its_beginning_is_refused(open_metadata):
    metadata = open_metadata.started(segment_bytes=1 << 10)
    for n in range(30):
        create(metadata, f"t{n}")
    metadata.log.delete_records_before(metadata.log.log_end_offset)
    metadata.log.enforce_retention(open_metadata.clock.time_ms())
    metadata.log.close()
    with pytest.raises(MetadataLogError):
        open_metadata(segment_bytes=1 << 10)


def test_records_of_a_config_that_was_unset_are_in_no_snapshot(open_metadata):
    metadata = open_metadata.started()
    create(metadata, "orders", **{"retention.ms": "5"})
    metadata.submit(DeleteTopics([("orders", bytes(16))]))
    name = f"{open_metadata.directory}/{metadata.snapshots.write_snapshot().file_name}"
    records = decode_snapshot(open_metadata.files.read(name)).records
    assert [record.resource_type for record in records if type(record) is ConfigRecord] == [4]


# ---------------------------------------------------------------- when the disk fails


class Failing(MemoryFiles):
    """Files that fail after a number of writes."""

    left = 10**9

    def create(self, path):
        return FailingFile(self, super().create(path))

    def open(self, path):
        return FailingFile(self, super().open(path))


class FailingFile:
    def __init__(self, files, file):
        self._files, self._file = files, file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        self._files.left -= 1
        if self._files.left < 0:
            raise OSError("no space left on device")
        self._file.write(data)


def test_what_could_not_be_written_has_not_happened(opener):
    files = Failing()
    metadata = opener(files).started()
    before = metadata.image
    metadata.loader.publishers.append(pytest.fail)
    files.left = 0
    with pytest.raises(KafkaStorageError):
        create(metadata, "orders")
    assert metadata.image is before


def test_whatever_was_answered_is_there_after_a_crash(opener):
    """Fails the first write, then the second, and so on, until a run ends without a failure."""
    for n in itertools.count():
        files = Failing()
        answered = set()
        open_it = opener(files)
        metadata = open_it.started(limits=SnapshotLimits(bytes=600), segment_bytes=1 << 11)
        files.left = n
        try:
            for name in map(str, range(8)):
                create(metadata, name, partitions=4)
                answered.add(name)
        except KafkaStorageError:
            files.left = 10**9
            assert topics(open_it(segment_bytes=1 << 11)) >= answered, f"the disk failed at write {n}"
        else:
            assert n > 8
            return


def test_what_is_read_at_a_start_is_on_the_disk(opener, monkeypatch):
    """An earlier process was killed before its fsync."""
    files = FaultyFiles()
    files.makedirs("/data")
    files.keep()
    metadata = opener(files).started()
    monkeypatch.setattr(metadata.log, "_services", LogServices(metadata.log.log_directory))  # flushes nothing
    write(metadata, [TopicRecord(name="orders", topic_id=bytes(15) + b"\2")])
    after_kill = files.survivor()
    kept = []

    class Listener:
        def committed(self, batches):
            kept.append(topics(opener(after_kill.survivor(power_cut=True))()))

    log = opener(after_kill).open_log()
    voter = SoleVoter(log, after_kill, ManualClock(), ReplicaKey(1, bytes(16)))
    voter.listeners.append(Listener())
    voter.load()
    assert kept and all("orders" in names for names in kept)
