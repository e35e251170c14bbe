import pytest
from confluent_kafka.schema_registry._sync.protobuf import ProtobufSerializer
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.values.framing import (
    MOST_INDEXES,
    Undecodable,
    header,
    message_indexes,
    schema_id_of,
    write_message_indexes,
)

PATHS = st.lists(st.integers(0, 1 << 20), min_size=1, max_size=MOST_INDEXES).map(tuple)


@given(st.integers(0, (1 << 32) - 1))
def test_a_schemas_id_stands_in_five_bytes(schema_id: int) -> None:
    assert len(header(schema_id)) == 5
    assert schema_id_of(header(schema_id) + b"value") == schema_id


@given(PATHS)
def test_message_indexes_are_those_of_confluents_serializer(path: tuple[int, ...]) -> None:
    import io

    written = io.BytesIO()
    ProtobufSerializer._encode_varints(written, list(path))
    assert write_message_indexes(path) == written.getvalue()
    assert message_indexes(b"12345" + written.getvalue() + b"rest") == (path, 5 + len(written.getvalue()))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (b"", "0 bytes are too few"),
        (b"\0\0\0\1", "4 bytes are too few"),
        (b'{"a": 1}', "first byte is 0x7b"),
    ],
)
def test_what_has_no_header_says_so(value: bytes, complaint: str) -> None:
    with pytest.raises(Undecodable, match=complaint):
        schema_id_of(value)


@pytest.mark.parametrize("rest", [b"", b"\x80", b"\xff" * 9, b"\x04\x00", b"\x03", b"\xfe\x7f" + bytes(9)])
def test_indexes_that_lie_are_no_indexes(rest: bytes) -> None:
    with pytest.raises(Undecodable, match="message indexes"):
        message_indexes(b"\0\0\0\0\1" + rest)
