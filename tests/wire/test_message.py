"""Messages at their versions, and the frames that answers go out in."""

import struct
from typing import Any

import pytest

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Request
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

Topic = FetchResponse.FetchableTopicResponse


def fetched(*records: Any) -> FetchResponse:
    partitions = [
        Topic.PartitionData(partition_index=index, high_watermark=0, aborted_transactions=None, records=each)
        for index, each in enumerate(records)
    ]
    return FetchResponse(responses=[Topic(topic="t", partitions=partitions)])


def test_requests_and_responses_know_each_other() -> None:
    assert FetchRequest.response is FetchResponse
    assert FetchResponse.request is FetchRequest
    assert Request.by_key[FetchRequest.api_key] is FetchRequest
    assert FetchResponse.versions == FetchRequest.versions


def test_a_version_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="HeartbeatResponse has no version 5, only 0-4"):
        HeartbeatResponse().encode(version=5)
    with pytest.raises(MalformedMessage, match="HeartbeatRequest has no version -1"):
        HeartbeatRequest.decode(b"", version=-1)


def test_a_key_is_declared_once() -> None:
    with pytest.raises(AssertionError, match="Twice has the key of"):

        class Twice(Request, api_key=1, versions="0", flexible="none"):
            pass


@pytest.mark.parametrize(("version", "header"), [(3, ""), (4, "00")])
def test_a_frame_is_size_header_and_body(version: int, header: str) -> None:
    (frame,) = HeartbeatResponse(error_code=27).encode_frame(7, version)
    body = bytes.fromhex("00000007" + header) + HeartbeatResponse(error_code=27).encode(version=version)
    assert bytes(frame) == struct.pack(">i", len(body)) + body


def test_the_header_of_api_versions_is_never_flexible() -> None:
    (frame,) = ApiVersionsResponse(api_keys=[]).encode_frame(7, 3)
    assert bytes(frame) == bytes.fromhex("0000000c 00000007 0000 01 00000000 00")
    assert [ApiVersionsResponse.header_version(version) for version in (0, 3, 5)] == [0, 0, 0]
    assert [FetchResponse.header_version(version) for version in (11, 12)] == [0, 1]
    assert 3 in ApiVersionsRequest.flexible


@pytest.mark.parametrize("version", [4, 12, 18])
def test_large_records_are_pieces_of_their_own(version: int) -> None:
    large, small = memoryview(bytes(100_000)), b"small"
    response = fetched(large, small, None, large, large)
    pieces = response.encode_frame(1, version)
    assert [piece is large for piece in pieces] == [False, True, False, True, False, True, False]
    whole = b"".join(pieces)
    assert len(whole) == 4 + struct.unpack_from(">i", whole)[0]
    body = whole[8 + FetchResponse.header_version(version) :]
    assert body == response.encode(version=version) == b"".join(response.encode_parts(version))
    assert [piece and len(piece) for piece in records_in(FetchResponse.decode(body, version=version))] == [
        100_000,
        5,
        None,
        100_000,
        100_000,
    ]


def records_in(response: FetchResponse) -> list[Any]:
    return [partition.records for topic in response.responses for partition in topic.partitions]


@pytest.mark.parametrize("version", [7, 12])
def test_small_records_are_joined(version: int) -> None:
    (frame,) = fetched(b"one", bytearray(b"two"), memoryview(b"three"), b"", None).encode_frame(1, version)
    assert isinstance(frame, bytes)
    assert b"three" in frame
