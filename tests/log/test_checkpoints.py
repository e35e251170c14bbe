"""Checkpoint files, byte for byte."""

import pytest

from barnabas.log.checkpoints import CorruptCheckpoint, read_entries, read_offsets, write_offsets


def test_the_bytes(place):
    path = f"{place.path}/recovery-point-offset-checkpoint"
    offsets = {("orders", 0): 815, ("a.b-c_d", 47): 0}
    write_offsets(place.files, path, offsets)
    assert place.files.read(path) == b"0\n2\norders 0 815\na.b-c_d 47 0\n"
    assert read_offsets(place.files, path) == offsets


def test_no_file(place):
    path = f"{place.path}/c"
    assert read_offsets(place.files, path) == {}
    write_offsets(place.files, path, {})
    assert place.files.read(path) == b"0\n0\n"
    assert read_offsets(place.files, path) == {}


def test_an_empty_file_of_apache_kafka(place):
    place.files.create(f"{place.path}/c")
    assert read_offsets(place.files, f"{place.path}/c") == {}


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "0\n2\norders 0 815\n",
        "0\n",
        "x\n1\n",
        "0\n1\norders 815\n",
        "0\n1\norders 0 -\n",
        "0\n1\na b 0 1\n",
        "0\n1\norders 0 81",
    ],
)
def test_an_invalid_checkpoint_is_refused(place, text):
    place.files.create(f"{place.path}/c").write(text.encode())
    with pytest.raises(CorruptCheckpoint, match=f"{place.path}/c"):
        read_entries(place.files, f"{place.path}/c", columns=3)


def test_bytes_that_are_not_text_are_refused(place):
    place.files.create(f"{place.path}/c").write(b"\xff\xfe")
    with pytest.raises(CorruptCheckpoint):
        read_entries(place.files, f"{place.path}/c", columns=2)
