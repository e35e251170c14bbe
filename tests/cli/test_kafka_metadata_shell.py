"""kafka-metadata-shell by its lines of standard input, and over files that it cannot read.

``compat_tests/apache_kafka/test_metadata_shell.py`` compares the tree and the commands with Apache Kafka's shell.
"""

import io
import sys

import pytest

from barnabas.cli import main
from barnabas.cluster.quorum.record_batches import encode_batches
from barnabas.wire.messages.metadata_records import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RemoveTopicRecord,
)

ENTITY = ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)
RECORDS = [
    FeatureLevelRecord(name="metadata.version", feature_level=25),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
    ClientQuotaRecord(entity=[ENTITY], key="producer_byte_rate", value=1.5, remove=False),
]


@pytest.fixture
def segment(tmp_path):
    """Returns a function that writes a segment with these records."""

    def write(records=RECORDS):
        path = tmp_path / "00000000000000000000.log"
        path.write_bytes(b"".join(each.data for each in encoded(records)))
        return path

    def encoded(records):
        return encode_batches(records, metadata_version=25, timestamp=1_700_000_000_000, epoch=3)

    return write


@pytest.fixture
def shell(capsys, monkeypatch):
    """Returns a function that calls the tool, with lines of standard input."""

    def call(*arguments, lines=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        code = main(["kafka", "metadata-shell", *map(str, arguments)])
        return code, capsys.readouterr()

    return call


def test_lines_of_standard_input(segment, shell):
    lines = "ls\ncd image\npwd\ncat configs/*/*\ncd ..\npwd\ncd /nope\ncd local/version\ncat\nsing\n'\n\nquit\nls\n"
    code, printed = shell("-s", segment(), lines=lines)
    assert code == 0
    assert printed.out.replace(">> ", "").splitlines() == [
        "[ Kafka Metadata Shell ]",
        "image",
        "local",
        "/image",
        "1",
        "/",
        "cd: /nope: no such file or directory.",
        "cd: local/version: not a directory.",
        "too few arguments",
        "Unknown command: sing. Type help for a list.",
        "No closing quotation",
    ]


def test_the_end_of_the_input_is_the_end(segment, shell):
    code, printed = shell("-s", segment(), lines="help\n")
    assert code == 0
    assert "tree    Show the contents of metadata nodes in a tree structure." in printed.out


def test_a_default_entity_has_a_name(segment, shell):
    _, printed = shell("-s", segment(), "tree", "/image/clientQuotas")
    assert printed.out == "user(<default>):\n  producer_byte_rate:\n    1.5\n"


def test_the_time_and_the_level_are_those_of_the_last_batch(segment, shell):
    _, printed = shell("-s", segment(), "cat", "/image/provenance", "/image/features/*")
    assert printed.out == "offset 2, epoch 3, time 2023-11-14T22:13:20Z[UTC]\nOptional[4.0-IV3]\n"


def test_what_cannot_be_read(segment, shell, tmp_path):
    code, printed = shell("-s", tmp_path / "nothing", "ls")
    assert (code, printed.err[:17]) == (1, "Unexpected error:")
    code, printed = shell("-s", segment([RemoveTopicRecord(topic_id=bytes(16))]), "ls")
    assert (code, printed.out) == (1, "")
    assert "cannot be understood between offsets 0 and 0" in printed.err
    path = segment()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert shell("-s", path, "ls")[0] == 1


def test_usage(segment, shell):
    assert shell("ls")[0] == 1
    assert shell("--help")[0] == 0
    code, printed = shell("-s", segment(), "pwd")
    assert (code, printed.out) == (0, "invalid choice: 'pwd' (choose from 'cat', 'find', 'ls', 'tree')\n")
