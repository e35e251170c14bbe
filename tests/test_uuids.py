"""UUIDs as text, and random ones."""

import pytest

from barnabas.uuids import random_uuid, uuid_of, uuid_text


def test_uuids_as_text():
    assert uuid_text(bytes(15) + b"\1") == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_of("AAAAAAAAAAAAAAAAAAAAAQ") == bytes(15) + b"\1"
    with pytest.raises(ValueError, match="UUID"):
        uuid_of("AAAA")


def test_a_random_uuid_never_looks_like_an_option():
    supply = iter([b"\xfb" + bytes(15), bytes(16)])
    assert uuid_text(random_uuid(lambda count: next(supply))) == "AAAAAAAAQACAAAAAAAAAAA"
