"""Request headers of both kinds, and invalid ones."""

import pytest

import barnabas.wire.messages.api_versions
import barnabas.wire.messages.fetch
import barnabas.wire.messages.offset_delete  # noqa: F401
from barnabas.errors import MalformedMessage
from barnabas.wire.headers import RequestHeader, ResponseHeader, read_request_header, request_header_version


@pytest.mark.parametrize(("key", "version", "header"), [(1, 11, 1), (1, 12, 2), (18, 0, 1), (18, 3, 2), (47, 0, 1)])
@pytest.mark.parametrize("client_id", ["rdkafka", "", None, "ü" * 300])
def test_headers_come_back(key: int, version: int, header: int, client_id: str | None) -> None:
    request_header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=-2, client_id=client_id
    )
    assert request_header_version(key, version) == header
    data = request_header.encode(version=header)
    assert read_request_header(data + b"body") == (request_header, len(data))
    assert read_request_header(b"...." + data, 4) == (request_header, 4 + len(data))
    assert RequestHeader.decode(data, version=header) == request_header


def test_the_client_id_is_never_compact() -> None:
    header = RequestHeader(request_api_key=18, request_api_version=4, correlation_id=7, client_id="ab")
    assert header.encode(version=2) == bytes.fromhex("0012 0004 00000007 0002 6162 00")
    assert ResponseHeader(correlation_id=7).encode(version=1) == bytes.fromhex("00000007 00")


def test_what_apache_tolerates() -> None:
    """A client id of length -2 is null, one that is not UTF-8 is accepted, unknown tags are skipped."""
    header, at = read_request_header(bytes.fromhex("0001 000b 00000007 fffe"))
    assert (header.client_id, at) == (None, 10)
    header, at = read_request_header(bytes.fromhex("0001 000b 00000007 0002 ff61"))
    assert header.client_id == "\ufffda"
    header, at = read_request_header(bytes.fromhex("0001 000c 00000007 ffff 02 00 01 aa 05 00 ff"))
    assert at == 16


def test_versions_that_nobody_has() -> None:
    """Versions far above are flexible, as those of newer clients. Versions below zero are not."""
    assert request_header_version(18, 99) == 2
    assert request_header_version(18, -1) == 1
    assert request_header_version(47, 99) == 1


@pytest.mark.parametrize(
    "data",
    [
        "",
        "0001 000c 00000007",
        "0001 000c 00000007 0005 61626364",
        "0001 000b 00000007 7fff 6162",
        "0001 000c 00000007 ffff",
        "0001 000c 00000007 ffff 01",
        "0001 000c 00000007 ffff 01 00 7f",
        "03e7 0000 00000007 ffff",
        "ffff 0000 00000007 ffff",
    ],
)
def test_malformed(data: str) -> None:
    with pytest.raises(MalformedMessage):
        read_request_header(bytes.fromhex(data))
