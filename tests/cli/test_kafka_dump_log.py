"""kafka-dump-log's lines for batches that no broker writes any more, and for unknown files.

``compat_tests/apache_kafka/test_dump_beside.py`` compares the rest with Apache Kafka's tool.
"""

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from barnabas.cli import main

NAME = "00000000000000000000.log"


OLD_LINES = """
offset: 0 position: 0 NoTimestampType: -1 size: 29 magic: 0 compresscodec: none crc: 374826161 isvalid: true
| offset: 0 NoTimestampType: -1 keySize: 1 valueSize: 2 isValid: true crc: 374826161 key: k payload: v0
offset: 1 position: 29 NoTimestampType: -1 size: 29 magic: 0 compresscodec: none crc: 1632654375 isvalid: true
| offset: 1 NoTimestampType: -1 keySize: 1 valueSize: 2 isValid: true crc: 1632654375 key: k payload: v1
offset: 0 position: 58 CreateTime: 1700000000000 size: 37 magic: 1 compresscodec: none crc: 1232348898 isvalid: true
| offset: 0 CreateTime: 1700000000000 keySize: 1 valueSize: 2 isValid: true crc: 1232348898 key: k payload: v0
offset: 1 position: 95 CreateTime: 1700000000001 size: 37 magic: 1 compresscodec: none crc: 2782288411 isvalid: true
| offset: 1 CreateTime: 1700000000001 keySize: 1 valueSize: 2 isValid: true crc: 2782288411 key: k payload: v1
""".strip().split("\n")
"""The output of DumpLogSegments 4.3.1 for the bytes of the test below."""


def old_messages(*kinds):
    """Returns messages of Apache Kafka before 0.11: a magic byte, with a codec."""
    data = b""
    for magic, codec in kinds:
        builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=10_000)
        for index in range(2):
            builder.append(index, timestamp=1_700_000_000_000 + index, key=b"k", value=b"v%d" % index)
        data += bytes(builder.build())
    return data


def dump(capsys, *arguments):
    code = main(["kafka", "dump-log", "--files", *arguments])
    return code, capsys.readouterr()


def test_messages_of_old_formats(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).write_bytes(old_messages((0, 0), (1, 0)))
    code, printed = dump(capsys, NAME, "--print-data-log")
    assert code == 0
    assert printed.out.splitlines() == [f"Dumping {NAME}", "Log starting offset: 0", *OLD_LINES]
    assert printed.err == f"Non-consecutive offsets in {tmp_path / NAME}\n  1 is followed by 0\n"


def test_a_message_that_is_damaged(tmp_path, capsys):
    data = bytearray(old_messages((1, 0)))
    data[36] ^= 1
    (tmp_path / NAME).write_bytes(data)
    _, printed = dump(capsys, str(tmp_path / NAME), "--deep-iteration")
    assert printed.out.count("isvalid: false") == printed.out.count("isValid: false") == 1


def test_other_files_are_passed_over(tmp_path, capsys):
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n0\n")
    (tmp_path / "0.index").touch()
    code, printed = dump(capsys, f"{tmp_path}/leader-epoch-checkpoint,{tmp_path}/0.index")
    assert code == 0
    assert printed.err == f"Ignoring unknown file {tmp_path}/leader-epoch-checkpoint\n"
    assert printed.out.splitlines()[-1] == f"{tmp_path}/0.index is empty."


def test_a_file_that_is_not_there(tmp_path, capsys):
    code, printed = dump(capsys, f"{tmp_path}/{NAME}")
    assert code == 1
    assert f"{tmp_path}/{NAME}" in printed.err


def test_a_name_without_an_offset_and_a_size_that_is_none(tmp_path, capsys):
    (tmp_path / "orders.log").touch()
    code, printed = dump(capsys, f"{tmp_path}/orders.log")
    assert (code, printed.err) == (1, f"{tmp_path}/orders.log has no offset in its name\n")
    code, printed = dump(capsys, NAME, "--max-bytes", "x")
    assert code == 1
    assert printed.err.startswith("Cannot parse argument 'x' of option max-bytes")


@pytest.mark.parametrize("option", ["--index-sanity-check", "--key-decoder-class=x.Y", "--remote-log-metadata-decoder"])
def test_what_is_not_supported_is_refused(option, capsys):
    code, printed = dump(capsys, NAME, option)
    assert code == 1
    assert f"{option.partition('=')[0]} is not supported: " in printed.err
