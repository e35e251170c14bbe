"""``barnabas check-log``: no findings in a valid directory, and a finding for every change."""

import json
import random
import re
import shutil
import struct
from pathlib import Path

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from barnabas.cli import main
from barnabas.cli.checking import directories
from barnabas.cli.checking.findings import ERROR, SHOWN_OF_A_KIND, Findings
from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.log.files import DiskFiles
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from tests.cli.conftest import Outcome

APACHE = Path(__file__).parents[1] / "log/golden/apache-4.3.1"


@pytest.fixture
def check(capsys):
    def run(*arguments):
        code = main(["check-log", *map(str, arguments)])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def data(lively, tmp_path):
    """A copy of the lively directory, to be damaged, without the deleted partition."""
    copy = tmp_path / "data"
    shutil.copytree(lively, copy)
    for path in copy.glob("*-delete"):
        shutil.rmtree(path)
    return copy


def change(path, position, *, bit=0):
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


def first(data, pattern):
    return next(iter(sorted(data.glob(pattern))))


# ---------------------------------------------------------------- what is well


def test_a_good_directory(check, data):
    assert check(data) == (0, "No findings.\n", "")


def test_a_partition_alone(check, data):
    assert check(data / "orders-0") == (0, "No findings.\n", "")
    assert check(data / "__cluster_metadata-0", data / "payments-0") == (0, "No findings.\n", "")


def test_a_partition_of_apache_kafka_that_belongs_to_nothing(check):
    assert check(APACHE) == (0, "No findings.\n", "")


@pytest.mark.parametrize("log_start", [0, 7])
def test_a_directory_that_was_not_closed(check, tmp_path, log_start):
    clock = ManualClock()
    manager = LogManager(DiskFiles(), [str(tmp_path)], clock=clock, scheduler=clock)
    manager.start(1)
    manager.open_all(lambda topic: TopicConfig())
    log = manager.create("orders", 0, bytes(15) + b"\7", TopicConfig(segment_bytes=500))
    for number in range(20):
        batch = build_batch([(None, b"1" * 9, 1000)] * 2, producer_id=7, producer_epoch=0, base_sequence=2 * number)
        log.append_as_leader(RecordBatch.parse(batch), leader_epoch=0, now_ms=1000)
    log.maybe_set_high_watermark(log.log_end_offset)
    log.delete_records_before(log_start)  # which no checkpoint has yet
    for directory in manager.directories:
        directory.release()
    assert check(tmp_path) == (0, "No findings.\n", "")


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets(check, tmp_path, magic, codec):
    content = bytearray()
    for base in (0, 3, 6):
        builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=10_000)
        for offset in range(3):
            builder.append(base + offset, timestamp=1000 + offset, key=None, value=b"value")
        built = bytearray(builder.build())
        if codec:
            built[0:8] = (base + 2).to_bytes(8)
        content += built
    path = tmp_path / "old-0/00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(content)
    assert check(path.parent).code == 0
    change(path, 40)
    assert "error" in check(path.parent).out


def test_what_is_no_data_directory(check, tmp_path):
    words = f"Error: {tmp_path} is not a data directory: it contains neither partitions nor meta.properties\n"
    assert check(tmp_path) == (1, "", words)


def test_a_quorum_state_without_voters(check, data):
    path = data / "__cluster_metadata-0/quorum-state"
    content = '{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    path.write_text(content)
    assert check(data).code == 0
    path.write_text(content.replace('AAAA"', 'AAAB"'))
    assert f"error {path}: the directory voted for is" in check(data).out


def test_json(check, data):
    path = first(data, "orders-0/*.log")
    change(path, 80)
    found = [json.loads(line) for line in check(data, "--json").lines]
    assert found[-1] == {"kind": "summary", "errors": 1, "warnings": 0}
    assert {name: found[0][name] for name in ("severity", "kind", "path", "position", "offset")} == {
        "severity": "error",
        "kind": "crc",
        "path": str(path),
        "position": 0,
        "offset": 0,
    }


# ---------------------------------------------------------------- the lock


def test_a_directory_that_a_broker_uses_is_refused(check, tmp_path):
    with Broker({"log.dirs": str(tmp_path)}, on_disk=True) as broker:
        broker.create_topic("t")
        words = f"Error: A broker is using {tmp_path}: it holds the lock {tmp_path}/.lock\n"
        assert check(tmp_path) == (1, "", words)
        assert check(tmp_path, "--repair") == (1, "", words)
        assert check(tmp_path / "t-0") == (1, "", words)
    assert check(tmp_path).code == 0


def test_no_lock_is_left_where_there_was_none(check, data):
    (data / ".lock").unlink(missing_ok=True)
    check(data)
    assert not (data / ".lock").exists()


# ---------------------------------------------------------------- flipped bits

UNCHECKED = {"meta.properties": re.compile(rb"cluster\.id=(\S+)")}
"""Values that are stored only once: the cluster's id, if there is one directory."""


def test_a_flipped_bit_in_any_file_is_found(data):
    chance = random.Random(5)
    looked_at = 0
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        content = path.read_bytes()
        unchecked = range(0)
        if path.name in UNCHECKED:
            unchecked = range(*UNCHECKED[path.name].search(content).span(1))
        count = min(len(content), 12 if len(content) > 1000 else 5)
        for position in chance.sample(range(len(content)), count):
            if position in unchecked:
                continue
            bit = chance.randrange(8)
            change(path, position, bit=bit)
            findings = Findings()
            directories.check([data], findings, lambda size: None)
            path.write_bytes(content)
            looked_at += 1
            # An offset that older versions of Kafka may have written is a warning.
            is_doubtful = findings.all and path.suffix in (".index", ".timeindex")
            assert findings.counts[ERROR] or is_doubtful, (path, position, bit)
    assert looked_at > 200


@pytest.mark.parametrize("field", range(61))
def test_every_field_of_a_batch_that_lies_among_others(data, field):
    path = first(data, "orders-0/*.log")
    places = [batch.size_in_bytes for batch in batches(path.read_bytes())]
    change(path, sum(places[:3]) + field, bit=field % 8)
    findings = Findings()
    directories.check_partition(path.parent, findings, lambda size: None)
    assert any(each.path == str(path) and each.severity == ERROR for each in findings.all)


# ---------------------------------------------------------------- damage, and what is said of it


def replaced(path, old, new):
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def other_letter(path, position):
    content = bytearray(path.read_bytes())
    content[position] = ord("B") if content[position] == ord("A") else ord("A")
    path.write_bytes(content)


def remove_batch(path):
    content = path.read_bytes()
    one, two, *_ = [batch.size_in_bytes for batch in batches(content)]
    path.write_bytes(content[:one] + content[one + two :])


DAMAGE = {
    "a torn batch": ("orders-0/*.log", lambda path: cut(path, -7), "bytes are left of a batch of"),
    "a magic byte": ("orders-0/*.log", lambda path: change(path, 16, bit=3), "the magic byte is 10, not 2"),
    "a length": ("orders-0/*.log", lambda path: change(path, 8, bit=7), "less than a header"),
    "a missing batch": ("orders-0/*.log", remove_batch, "is missing"),
    "an epoch": ("orders-0/*.log", lambda path: change(path, 15, bit=1), "leader epoch is 2, but that of"),
    "an index": ("payments-0/*.index", lambda path: change(path, 7), "where no batch starts"),
    "an index's offset": ("payments-0/*.index", lambda path: change(path, 3, bit=6), "no batch has"),
    "half an entry": ("payments-0/*.index", lambda path: cut(path, -3), "5 bytes are left at the end, but an entry"),
    "a time index": ("payments-0/*.timeindex", lambda path: change(path, 7), "the maximum is"),
    "a cut time index": ("payments-0/*.timeindex", lambda path: cut(path, -12), "its last timestamp is"),
    "a transaction": ("payments-0/*.txnindex", lambda path: change(path, 17), "but in the log producer"),
    "transactions": ("payments-0/*.txnindex", Path.unlink, "an aborted transaction is missing: producer 70"),
    "a snapshot": ("payments-0/*[1-9].snapshot", lambda path: change(path, 30), "but that of its bytes is"),
    "epochs": ("orders-0/leader-epoch-checkpoint", lambda path: replaced(path, b"\n0 0\n", b"\n0 1\n"), "leader epoch"),
    "a late epoch": ("orders-0/leader-epoch-checkpoint", lambda path: path.write_text("0\n1\n9 0\n"), "is later than"),
    "a topic's id": ("orders-0/partition.metadata", lambda path: other_letter(path, 25), "the topic id is"),
    "a stranger's id": ("orders-0/partition.metadata", lambda path: cut(path, 11), "topic_id is missing"),
    "a recovery point": ("recovery-point*", lambda path: replaced(path, b" 0 ", b" 0 9"), "but its log ends at"),
    "a line": (
        "replication-offset*", lambda path: replaced(path, b"orders 0", b"order 0"), "order-0 is not in this directory"
    ),
    "a count": ("replication-offset*", lambda path: change(path, 2), "entries in its header"),
    "a start": ("log-start*", lambda path: path.write_text("0\n1\norders 0 3\n"), "first leader epoch starts at 0"),
    "a cleaner's": ("orders-0", lambda path: (path.parent / "cleaner-offset-checkpoint").write_text(
        "0\n1\norders 0 999\n"), "orders-0 has offset 999"),
    "a node": ("meta.properties", lambda path: replaced(path, b"node.id=1", b"node.id=3"), "node 3 is not in"),
    "a directory": ("meta.properties", lambda path: change(path, len(path.read_bytes()) - 9), "directory"),
    "no owner": ("meta.properties", Path.unlink, "the owner"),
    "a clean stop": (".kafka_cleanshutdown", lambda path: path.write_text('{"version":0,"brokerEpoch":1}'), "but the"),
    "a vote": ("__cluster_metadata-0/quorum-state", lambda path: replaced(path, b'"leaderEpoch":2', b'"leaderEpoch":1'),
               "the leader epoch is 1, but the log's latest is 2"),
    "voters": ("__cluster_metadata-0/quorum-state", lambda path: replaced(path, b'voterId":1', b'voterId":4'), "[4]"),
    "metadata": ("__cluster_metadata-0/*.checkpoint", lambda path: cut(path, -30), "too few for a batch"),
    "no footer": ("__cluster_metadata-0/*.checkpoint", lambda path: cut(path, sum(
        batch.size_in_bytes for batch in list(batches(path.read_bytes()))[:-1])), "without an end"),
    "a first snapshot": ("bootstrap.checkpoint", lambda path: change(path, 15), "epoch"),
    "a partition gone": ("orders-1", shutil.rmtree, "it is missing, but assigned to this directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage(check, data, name):
    pattern, harm, words = DAMAGE[name]
    path = first(data, pattern)
    harm(path)
    code, out, _ = check(data)
    assert code == 1
    assert any(line.startswith("error ") and words in line for line in out.splitlines()), out
    if path.is_file():
        assert f"error {path}" in out or name in ("a cleaner's", "a missing batch", "transactions", "epochs"), out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("orders-0/00000000000000000000.log.deleted", "of an unfinished operation"),
        ("orders-0/00000000000000000000.log.cleaned", "of an unfinished operation"),
        ("orders-0/00000000000000009999.index", "an index without a log"),
        ("orders-0/notes.txt", "it does not belong in a partition directory"),
        ("notes.txt", "it does not belong in a data directory"),
        ("meta.properties.tmp", "an unfinished replacement of a file"),
        ("orders-7.0123-future/x", "that was being moved here"),
        ("orders-7.0123-stray/x", "kept for inspection"),
        ("strange-0/00000000000000000000.log", "the partition is not assigned to this node"),
    ],
)
def test_what_the_next_start_puts_right_is_a_warning(check, data, name, words):
    path = data / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    out = check(data).out
    assert any(line.startswith("warning ") and words in line for line in out.splitlines()), out
    assert f"error {path.parent}" not in out


def test_missing_indexes_are_a_warning(check, data):
    first(data, "orders-0/*.index").unlink()
    first(data, "orders-0/*.timeindex").unlink()
    (data / "orders-0/leader-epoch-checkpoint").unlink()
    code, out, _ = check(data)
    assert (code, out.splitlines()[-1]) == (0, "0 errors, 3 warnings")


def test_behind_damage_an_index_shows_the_way_on(check, data):
    path = first(data, "payments-0/*.log")
    places = [batch.size_in_bytes for batch in batches(path.read_bytes())]
    change(path, places[0] + 16, bit=6)
    change(path, sum(places[:-1]) + 70)
    out = check(data).out
    assert f"error {path} position={places[0]} " in out
    assert f"error {path} position={sum(places[:-1])} " in out


def test_too_much_of_a_kind_is_counted(check, data):
    path = first(data, "payments-0/*.log")
    content = bytearray(path.read_bytes())
    position, count = 0, 0
    for batch in batches(bytes(content)):
        content[position + 30] ^= 1
        position += batch.size_in_bytes
        count += 1
    path.write_bytes(content)
    lines = [line for line in check(data).lines if f"error {path}" in line and ("CRC" in line or "more" in line)]
    assert len(lines) == SHOWN_OF_A_KIND + 1
    assert lines[-1] == f"error {path}: {count - SHOWN_OF_A_KIND} more of this kind"


# ---------------------------------------------------------------- holes


def with_a_hole(data):
    """Removes a batch from the first segment of orders-0, and its indexes, which are rebuilt."""
    path = first(data, "orders-0/*.log")
    remove_batch(path)
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink()
    for snapshot in path.parent.glob("*.snapshot"):
        snapshot.unlink()
    return path


def test_holes_where_nothing_is_compacted_are_errors(check, data):
    path = with_a_hole(data)
    (line,) = (line for line in check(data).lines if " missing" in line and line.startswith("error"))
    assert re.match(rf"error {path} position=\d+ offset=\d+: the batch begins at offset \d+, but \d+ is missing", line)


def test_holes_may_be_where_compaction_was(check, data):
    with_a_hole(data)
    (data / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 50\n")
    assert check(data).code == 0


# ---------------------------------------------------------------- several directories


def test_directories_of_different_clusters(check, data, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    text = (data / "meta.properties").read_text()
    (other / "meta.properties").write_text(text)
    assert f"error {other}/meta.properties: it has the directory id of {data}" in check(data, other).out
    (other / "meta.properties").write_text(re.sub("cluster.id=.{4}", "cluster.id=abcd", text))
    assert f"error {other}/meta.properties: node 1 of cluster abcd" in check(data, other).out


def test_a_partition_that_is_there_twice(check, data, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(data / "orders-0", other / "orders-0")
    assert f"the partition is in {data}/orders-0 as well" in check(data, other).out


# ---------------------------------------------------------------- repair

REPAIRED = ("a torn batch", "a length", "an index", "half an entry", "a cut time index",
            "a transaction", "transactions", "a snapshot", "epochs", "a recovery point", "a line", "a count",
            "a clean stop")  # fmt: skip


@pytest.mark.parametrize("name", REPAIRED)
def test_after_a_repair_all_is_well(check, data, name):
    pattern, harm, _ = DAMAGE[name]
    harm(first(data, pattern))
    code, out, err = check(data, "--repair")
    assert (code, err) == (0, ""), out
    assert out.splitlines()[-2].startswith("repaired: ")
    assert out.splitlines()[-1] == "No findings."
    assert check(data) == (0, "No findings.\n", "")


def test_a_repair_keeps_what_lies_before_the_damage_and_says_what_it_cut(check, data):
    path = first(data, "orders-0/*.log")
    content = path.read_bytes()
    sizes = [batch.size_in_bytes for batch in batches(content)]
    change(path, sum(sizes[:2]) + 70)
    out = check(data, "--repair").out
    assert path.read_bytes() == content[: sum(sizes[:2])]
    assert f"repaired: {path} is cut at offset " in out
    assert f"position {sum(sizes[:2])} of {len(content)}: the batch's CRC does not match" in out
    with Broker({"log.dirs": str(data)}, on_disk=True) as broker:
        kept = list(batches(content[: sum(sizes[:2])]))
        orders = [record.offset for record in broker.records("orders") if record.partition == 0]
        assert orders == list(range(kept[-1].next_offset))


def test_what_cannot_be_repaired_is_still_told(check, data):
    change(first(data, "orders-0/partition.metadata"), 25)
    code, out, _ = check(data, "--repair")
    assert code == 1
    assert any(line.startswith("still: error ") for line in out.splitlines())


def test_nobodys_directory_cannot_be_repaired(check, data):
    (data / "meta.properties").unlink()
    code, _, err = check(data, "--repair")
    assert (code, err) == (1, f"Error: Cannot repair: {data}/meta.properties is missing\n")


def test_leftovers_are_cleared_away(check, data):
    (data / "orders-0/00000000000000000000.log.deleted").touch()
    (data / "gone-0.0123-delete").mkdir()
    assert check(data, "--repair").lines[-1] == "No findings."
    assert not list(data.glob("*-delete"))


def test_a_good_directory_is_left_alone(check, data):
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    assert check(data, "--repair") == (0, "No findings.\n", "")
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before


def test_a_partition_alone_is_not_repaired(check, data):
    assert check(data / "orders-0", "--repair").code == 2
    assert check(data / "orders-0", data).code == 2


def test_an_open_transaction_that_a_snapshot_does_not_know(check, data):
    path = max(data.glob("payments-0/*.snapshot"))
    content = bytearray(path.read_bytes())
    position = content.index(struct.pack(">q", 702))
    content[position + 38 : position + 46] = struct.pack(">q", -1)
    from barnabas.records.checksum import crc32c

    struct.pack_into(">I", content, 2, crc32c(content[6:]))
    path.write_bytes(content)
    assert "open transaction of producer 702 is -1, but in the log " in check(data).out


def test_a_terminal_shows_how_far_it_is(check, data, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    code, out, err = check(data)
    assert (code, out) == (0, "No findings.\n")
    assert "checking" in err
    assert re.search(r"\d+\.\d/\d+\.\d KiB", err)
