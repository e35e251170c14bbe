"""``barnabas dump-log``: its output, also for damaged files."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli import commands, main
from barnabas.cli.dump_log import DECODER_OPTIONS, TOPICS
from barnabas.cli.layouts.coordinators import OF_TOPIC
from barnabas.records.builder import build_batch
from barnabas.wire.messages.metadata_records import (
    ConfigRecord,
    UserScramCredentialRecord,
    encode_metadata_record,
)
from tests.cli.conftest import Outcome


@pytest.fixture
def dump(capsys):
    def run(*arguments):
        code = main(["dump-log", *map(str, arguments)])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "orders-0/00000000000000000007.log"
    path.parent.mkdir()
    records = [(b"k", "grüße".encode(), 1000, [("h", b"1"), ("n", None)]), (None, b"\xff\0", 1001)]
    path.write_bytes(build_batch(records, base_offset=7, leader_epoch=2, producer_id=5, producer_epoch=0,
                                 base_sequence=3))  # fmt: skip
    return path


def test_batches(dump, log):
    code, out, err = dump(log)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"file path={log} type=log size={log.stat().st_size}",
        "batch position=0 size=92 base_offset=7 last_offset=8 count=2 partition_leader_epoch=2 magic=2 codec=none "
        "timestamp_type=CreateTime base_timestamp=1000 max_timestamp=1001 producer_id=5 producer_epoch=0 "
        "base_sequence=3 last_sequence=4 is_transactional=false is_control=false delete_horizon_ms=- "
        f"crc={int.from_bytes(log.read_bytes()[17:21])} crc_ok=true",
    ]


def test_records(dump, log):
    *_, first, second = dump(log, "--deep").lines
    assert first == "  record offset=7 timestamp=1000 sequence=3 key_size=1 value_size=7"
    assert second == "  record offset=8 timestamp=1001 sequence=4 key_size=-1 value_size=2"


def test_data(dump, log):
    *_, first, second = dump(log, "--print-data").lines
    assert first.endswith(' key="k" value="grüße" headers=[["h","1"],["n",null]]')
    assert second.endswith(" key=- value=0xff00 headers=[]")


def test_json_has_an_object_a_line(dump, log):
    found = [json.loads(line) for line in dump(log, "--print-data", "--json").lines]
    assert [each["kind"] for each in found] == ["file", "batch", "record", "record"]
    assert {each["file"] for each in found} == {str(log)}
    assert (found[2]["key"], found[2]["value"]) == ("k", "grüße")
    assert (found[3]["key"], found[3]["value"]) == (None, {"hex": "ff00"})


def test_the_options_of_kafkas_own_tool(dump, log):
    ours = dump(log, "--print-data")
    assert dump("--files", f"{log}", "--print-data-log") == ours
    assert dump("--files", f"{log},{log}", "--deep-iteration").out == dump(log, "--deep").out * 2


def test_a_whole_directory(dump, lively):
    code, out, _ = dump(lively)
    assert code == 0
    shown = [line for line in out.splitlines() if line.startswith("file ")]
    names = {line.split("path=")[1].split()[0].rpartition("/")[2] for line in shown}
    assert {"meta.properties", "quorum-state", "00000000000000000000.timeindex", ".kafka_cleanshutdown"} <= names
    assert "aborted-transaction producer_id=700 " in out


def test_records_of_internal_topics_by_their_directory(dump, lively):
    out = dump(lively / "__cluster_metadata-0", "--print-data").out
    assert '{"type":"TopicRecord","version":0,"name":"orders",' in out
    groups = "".join(dump(path, "--print-data").out for path in lively.glob("__consumer_offsets-*"))
    assert 'key={"type":"OffsetCommit","group":"billing","topic":"orders","partition":0} value={"version":' in groups


@pytest.mark.parametrize("name", ["__cluster_metadata-0", "__cluster_metadata-0.00ff-delete"])
def test_the_directory_of_a_topic_that_goes_is_known_as_well(dump, lively, tmp_path, name):
    (tmp_path / name).mkdir()
    moved = tmp_path / name / "00000000000000000000.log"
    shutil.copy(lively / "__cluster_metadata-0/00000000000000000000.log", moved)
    assert '"type":"TopicRecord"' in dump(moved, "--print-data").out


def test_secrets_of_the_metadata_log_are_hidden(dump, tmp_path):
    records = [
        UserScramCredentialRecord(
            name="alice", mechanism=1, salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=4096
        ),
        ConfigRecord(resource_type=4, resource_name="1", name="listener.name.x.ssl.key.password", value="xyzzy"),
        ConfigRecord(resource_type=4, resource_name="1", name="of.a.plug-in", value="xyzzy"),
        ConfigRecord(resource_type=4, resource_name="1", name="log.retention.ms", value="77"),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="78"),
    ]
    log = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(build_batch([(None, encode_metadata_record(record), 1000) for record in records]))
    hidden, shown = dump(log, "--print-data").out, dump(log, "--print-data", "--show-secrets").out
    assert '"salt":"[hidden]","stored_key":"[hidden]","server_key":"[hidden]","iterations":4096' in hidden
    assert hidden.count('"value":"[hidden]"') == 2
    assert '"value":"77"' in hidden and '"value":"78"' in hidden
    assert "xyzzy" not in hidden
    assert shown.count("xyzzy") == 2 and "[hidden]" not in shown


def test_records_of_internal_topics_by_an_option(dump, lively, tmp_path):
    moved = tmp_path / "00000000000000000000.log"
    shutil.copy(lively / "__cluster_metadata-0/00000000000000000000.log", moved)
    assert "TopicRecord" not in dump(moved, "--print-data").out
    assert '"type":"TopicRecord"' in dump(moved, "--cluster-metadata-decoder").out
    wrong = dump(moved, "--offsets-decoder")
    assert wrong.code == 1
    assert "not a record of offsets: " in wrong.out


def test_each_internal_topic_has_an_option():
    assert {topic: name for name, topic in TOPICS.items()} == OF_TOPIC
    assert DECODER_OPTIONS.keys() == TOPICS.keys()


@pytest.mark.parametrize("position", [9, 16, 40, 70])
def test_damage_is_shown_where_it_is(dump, log, position):
    data = log.read_bytes()
    torn = bytearray(data)
    torn[position] ^= 0x80
    log.write_bytes(data + torn)
    code, out, _ = dump(log)
    assert code == 1
    (line,) = (line for line in out.splitlines() if line.startswith("damage "))
    assert line.startswith("damage position=92 offset=7 what=")


def test_files_on_their_way_out_are_what_they_were(dump, log):
    moved = log.rename(log.with_name(log.name + ".deleted"))
    assert "type=log" in dump(moved).lines[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("00000000000000000007.index", b"\0\0\0\x09\0\0\0\x61" * 2, "does not follow"),
        ("00000000000000000007.index", bytes(7), "7 bytes are left, but an entry has 8"),
        ("00000000000000000007.timeindex", bytes(7) + b"\x09\0\0\0\x01" + b"\0" * 13, "does not follow"),
        ("00000000000000000007.txnindex", b"\0\x01" + bytes(32), "the entry's version is 1, not 0"),
        ("00000000000000000007.snapshot", bytes(5), "5 bytes are too few"),
        ("00000000000000000007.snapshot", bytes(11), "the version is 0, not 1"),
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n", "2 entries in its header, but it has 1"),
        ("leader-epoch-checkpoint", b"0\n1\n0 0 0\n", "is not epoch, start_offset"),
        ("recovery-point-offset-checkpoint", b"1\n0\n", "the version is 1, not 0"),
        ("recovery-point-offset-checkpoint", b"nonsense", "the version or the count is missing"),
        ("quorum-state", b"{", "it is not JSON"),
        ("quorum-state", b"[]", "it is not a JSON object"),
        ("meta.properties", b"version=1\nnonsense\n", "has no name and value"),
    ],
)
def test_damage_of_small_files(dump, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    code, out, _ = dump(path)
    assert code == 1
    assert any(line.startswith("damage ") and words in line for line in out.splitlines())


def test_what_cannot_be_shown(dump, tmp_path):
    (tmp_path / "README").touch()
    assert dump(tmp_path / "README").err.endswith("README is not a file of a log directory, by its name\n")
    assert dump(tmp_path / "0.log") == (1, "", f"Error: [Errno 2] No such file or directory: '{tmp_path}/0.log'\n")
    assert dump().code == 2
    assert dump(tmp_path) == (0, "", "")


def test_construct_is_loaded_by_nothing_else():
    program = (
        "import sys, barnabas.cli.commands as c; [c.barnabas.get_command(None, name) for name in c.COMMANDS];"
        "import barnabas.testing; print('construct' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_without_construct_it_is_a_hint_at_the_extra(dump, log, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("barnabas.cli.dumping")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("barnabas.cli.layouts")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "construct", None)
    code, _, err = dump(log)
    assert code == 1
    assert err == "Error: construct is not installed; it is part of the extra cli: pip install 'barnabas[cli]'\n"


def test_the_page_about_it_names_options_that_there_are():
    page = (Path(__file__).parents[2] / "docs/how-to/inspect-a-data-directory.md").read_text()
    there = {
        option
        for name in ("dump-log", "check-log", "serve")
        for parameter in commands.barnabas.get_command(None, name).params
        for option in parameter.opts
    }
    used = set(re.findall(r"--[a-z][a-z-]+", page))
    assert len(used) > 8
    assert used <= there
