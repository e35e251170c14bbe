"""Two readings of all that a broker wrote: construct's, and the broker's own. Every field is the same."""

import json
from pathlib import Path

import pytest

from barnabas.cli.dumping import logs
from barnabas.cli.dumping.files import files_in, kind_of, rows
from barnabas.cli.dumping.rows import Source
from barnabas.cli.layouts.coordinators import DECODERS, OF_TOPIC
from barnabas.cluster.quorum.snapshots import decode_snapshot
from barnabas.log import checkpoints, meta_properties
from barnabas.log.files import DiskFiles
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.producer_state import ProducerState
from barnabas.log.recovery import read_topic_id
from barnabas.log.time_index import TimeIndex
from barnabas.log.transaction_index import decode_transactions
from barnabas.records.batch import batches
from barnabas.records.record import records_of
from barnabas.uuids import uuid_text
from barnabas.wire.messages.group_records import decode_key, decode_value
from barnabas.wire.messages.metadata_records import MetadataRecord, decode_metadata_record
from tests.cli.layouts.test_batches import check_equal
from tests.cli.layouts.test_coordinators import plain


def dumped(path, **options):
    with Source(path) as source:
        found = list(rows(source, kind_of(path), logs.Options(True, True, **options)))
    assert not [row for row in found if row.is_damage], path
    return found


def fields(path, kind):
    return [row.fields for row in dumped(path) if row.kind == kind]


def test_there_is_something_of_everything(lively):
    kinds = {kind_of(path) for path in files_in(lively)}
    assert kinds == {
        "log",
        "index",
        "timeindex",
        "txnindex",
        "producer-snapshot",
        "metadata-snapshot",
        "offset-checkpoint",
        "epoch-checkpoint",
        "properties",
        "json",
    }


def test_logs(lively):
    paths = [path for path in files_in(lively) if kind_of(path) == "log"]
    assert len(paths) > 10
    for path in paths:
        check_equal(dumped(path), path.read_bytes())


def test_indexes(lively):
    entries = 0
    for path in files_in(lively):
        base = int(path.stem) if path.stem.isdigit() else 0
        if path.suffix == ".index":
            index = OffsetIndex.decode(path.read_bytes(), base)
            found = [(each["offset"] - base, each["log_position"]) for each in fields(path, "index-entry")]
            assert found == list(zip(index.relative_offsets, index.positions, strict=True))
            entries += len(found)
        elif path.suffix == ".timeindex":
            times = TimeIndex.decode(path.read_bytes(), base)
            found = [(each["timestamp"], each["offset"] - base) for each in fields(path, "timeindex-entry")]
            assert found == list(zip(times.timestamps, times.relative_offsets, strict=True))
            entries += len(found)
    assert entries > 50


def test_aborted_transactions(lively):
    paths = sorted((lively / "payments-0").glob("*.txnindex"))
    assert len(paths) > 1
    for path in paths:
        expected = decode_transactions(path.read_bytes(), int(path.stem))
        names = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
        assert [tuple(each[name] for name in names) for each in fields(path, "aborted-transaction")] == [*expected]


def test_producers(lively):
    count = 0
    for path in lively.rglob("*.snapshot"):
        offset = int(path.stem)
        state = ProducerState(DiskFiles(), str(path.parent), [offset])
        assert state.load_snapshot(offset, offset) == offset
        found = fields(path, "producer")
        assert [each["producer_id"] for each in found] == list(state.entries)
        for each, entry in zip(found, state.entries.values(), strict=True):
            count += 1
            assert each.pop("position") >= 10
            assert each == {
                "producer_id": entry.producer_id,
                "producer_epoch": entry.producer_epoch,
                "last_sequence": entry.last_sequence,
                "last_offset": entry.last_offset,
                "offset_delta": entry.batches[-1].offset_delta if entry.batches else 0,
                "timestamp": entry.last_timestamp,
                "coordinator_epoch": entry.coordinator_epoch,
                "current_txn_first_offset": entry.current_txn_first_offset,
            }
    assert count > 10


def test_checkpoints(lively):
    files = DiskFiles()
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.LOG_START_OFFSETS, checkpoints.HIGH_WATERMARKS):
        found = fields(lively / name, "checkpoint-entry")
        expected = checkpoints.read_offsets(files, str(lively / name))
        assert {(each["topic"], each["partition"]): each["offset"] for each in found} == expected
    for path in lively.rglob("leader-epoch-checkpoint"):
        found = [(each["epoch"], each["start_offset"]) for each in fields(path, "checkpoint-entry")]
        assert found == LeaderEpochs.load(files, str(path)).entries
        assert found


def test_properties(lively):
    files = DiskFiles()
    mine = meta_properties.read(files, str(lively))
    assert fields(lively / "meta.properties", "properties") == [
        {
            "version": "1",
            "cluster_id": mine.cluster_id,
            "node_id": str(mine.node_id),
            "directory_id": uuid_text(mine.directory_id),
        }
    ]
    for path in lively.rglob("partition.metadata"):
        topic_id = uuid_text(read_topic_id(files, str(path.parent)))
        assert fields(path, "properties") == [{"version": "0", "topic_id": topic_id}]


def test_json(lively):
    path = lively / "__cluster_metadata-0/quorum-state"
    assert fields(path, "quorum-state") == [json.loads(path.read_text())]
    assert fields(lively / ".kafka_cleanshutdown", "cleanshutdown")[0]["version"] == 0


def raw_records(path: Path):
    for batch in batches(path.read_bytes()):
        if not batch.is_control:
            yield from records_of(batch)


def test_group_records(lively):
    kinds = set()
    for path in lively.glob("__consumer_offsets-*/*.log"):
        found = [row.fields for row in dumped(path, decoder="offsets") if row.kind == "record"]
        for row, record in zip(found, raw_records(path), strict=True):
            key = decode_key(record.key)
            kinds.add(row["key"].pop("type"))
            assert row["key"] == plain(key, 0)
            if record.value is not None:
                version = row["value"].pop("version")
                value = decode_value(key, record.value)
                assert row["value"] == plain(value, version)
                assert value.encode(version=version) == record.value[2:]
    assert kinds == {"OffsetCommit", "GroupMetadata"}


@pytest.mark.parametrize("pattern", ["__cluster_metadata-0/*.log", "__cluster_metadata-0/*.checkpoint", "*.checkpoint"])
def test_metadata_records(lively, pattern):
    for path in lively.glob(pattern):
        found = [row.fields for row in dumped(path, decoder="metadata") if row.kind == "record"]
        found = [row for row in found if "control_type" not in row]
        expected = list(raw_records(path))
        if path.suffix == ".checkpoint":
            assert len(decode_snapshot(path.read_bytes()).records) == len(expected)
        for row, record in zip(found, expected, strict=True):
            value = decode_metadata_record(record.value)
            assert isinstance(value, MetadataRecord)
            shown = row["value"]
            assert shown.pop("type") == type(value).__name__
            assert shown == {**plain(value, version := shown["version"]), "version": version}
        assert found


def test_control_records_of_the_quorum(lively):
    path = next(lively.glob("__cluster_metadata-0/*.checkpoint"))
    found = [row.fields.get("control_type") for row in dumped(path) if row.kind == "record"]
    assert (found[0], found[-1]) == ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")


def test_the_internal_topics_have_their_decoders():
    assert set(OF_TOPIC.values()) == set(DECODERS)
