"""Loads: prebuilt frames over a blocking socket, and librdkafka through confluent-kafka.

Knows nothing of which server it loads. The raw loads send bytes made before the clock started: only the server
is measured.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.records.builder import build_batch
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.wire.messages.produce import ProduceRequest

LONGEST_SILENCE_S = 60
CLIENT_ID = "bench"
PRODUCE_VERSION, FETCH_VERSION, CREATE_VERSION, QUOTAS_VERSION, LIST_OFFSETS_VERSION = 9, 12, 5, 1, 7


class Frame(NamedTuple):
    """An encoded request, and the position of its batch (after the size)."""

    data: bytes
    batch_at: int


def framed(api_key: int, version: int, body: bytes, correlation_id: int = 7) -> bytes:
    """Encodes a request with request header version 2."""
    client_id = CLIENT_ID.encode()
    header = struct.pack(">hhih", api_key, version, correlation_id, len(client_id)) + client_id + b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


def produce_frame(topic: str, batch_bytes: int, record_bytes: int = 1024) -> Frame:
    """Returns a Produce request, acks=1, with one batch of about this many bytes, of records of this size."""
    count = max(batch_bytes // record_bytes, 1)
    now_ms = time.time_ns() // 1_000_000  # retention would delete old records during the measurement
    return produce_frame_of(topic, bytes(build_batch([(None, b"v" * (record_bytes - 8), now_ms)] * count)))


def produce_frame_of(topic: str, batch: bytes) -> Frame:
    """Returns a Produce request, acks=1, with this batch."""
    topic_type = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[topic_type(name=topic, partition_data=[topic_type.PartitionProduceData(index=0, records=batch)])],
    )
    data = framed(0, PRODUCE_VERSION, request.encode(version=PRODUCE_VERSION))
    return Frame(data, data.index(batch) - 4)


def fetch_frame(topic: str, offset: int, max_bytes: int, partitions: int = 1) -> bytes:
    """Returns a Fetch from ``offset`` of each of the partitions, without a session and without waiting."""
    topic_type = FetchRequest.FetchTopic
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[
            topic_type(
                topic=topic,
                partitions=[
                    topic_type.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
                    for index in range(partitions)
                ],
            )
        ],
    )
    return framed(1, FETCH_VERSION, request.encode(version=FETCH_VERSION))


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=LONGEST_SILENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def receive(connection: socket.socket, buffer: bytearray) -> int:
    """Reads one response into ``buffer``; returns its size."""
    view = memoryview(buffer)
    have = 0
    needed = 4
    while have < needed:
        got = connection.recv_into(view[have:needed] if needed > 4 else view[have:4])
        if not got:
            raise ConnectionError("the server closed the connection")
        have += got
        if needed == 4 and have == 4:
            needed = 4 + struct.unpack_from(">i", buffer)[0]
    return needed


def create_topic(port: int, name: str, partitions: int = 1) -> None:
    topic_type = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            topic_type(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                assignments=[],
                configs=[topic_type.CreatableTopicConfig(name="segment.bytes", value=str(1 << 30))],
            )
        ],
        timeout_ms=60_000,
    )
    buffer = bytearray(1 << 20)
    with connected(port) as connection:
        connection.sendall(framed(19, CREATE_VERSION, request.encode(version=CREATE_VERSION)))
        size = receive(connection, buffer)
    response = CreateTopicsResponse.decode(memoryview(buffer)[9:size], version=CREATE_VERSION)
    assert response.topics[0].error_code in (0, 36), response
    if partitions > 1:
        _wait_for_log(port, name, partitions - 1)


def _wait_for_log(port: int, topic: str, partition: int) -> None:
    """Waits until the partition is served: the logs of a large topic are created after it has been answered."""
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    wanted = topic_type.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[topic_type(name=topic, partitions=[wanted])]
    ).encode(version=LIST_OFFSETS_VERSION)
    buffer = bytearray(1 << 16)
    with connected(port) as connection:
        while True:
            connection.sendall(framed(2, LIST_OFFSETS_VERSION, request))
            size = receive(connection, buffer)
            response = ListOffsetsResponse.decode(memoryview(buffer)[9:size], version=LIST_OFFSETS_VERSION)
            error_code = response.topics[0].partitions[0].error_code
            if error_code == 0:
                return
            assert error_code in (3, 5, 6), response  # unknown, no leader or not the leader: not yet
            time.sleep(0.01)


def set_quotas(port: int, client_id: str, values: Mapping[str, float | None]) -> None:
    """Sets quotas of a client id; None removes one."""
    entry_type = AlterClientQuotasRequest.EntryData
    entry = entry_type(
        entity=[entry_type.EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[entry_type.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    buffer = bytearray(1 << 16)
    with connected(port) as connection:
        connection.sendall(framed(49, QUOTAS_VERSION, request.encode(version=QUOTAS_VERSION)))
        size = receive(connection, buffer)
    response = AlterClientQuotasResponse.decode(memoryview(buffer)[9:size], version=QUOTAS_VERSION)
    assert response.entries[0].error_code == 0, response


def pump(port: int, frame: bytes, count: int, depth: int, pieces: int = 1) -> float:
    """Sends the frame repeatedly, at most ``depth`` of them in flight; returns the seconds.

    ``pieces`` frames are joined for each send, as a client that pipelines small requests would.
    """
    joined = frame * pieces
    answers = count // pieces * pieces
    slots = threading.Semaphore(max(depth // pieces, 1))
    with connected(port) as connection:

        def count_answers() -> None:
            seen, rest, buffer = 0, b"", bytearray(1 << 18)
            while seen < answers:
                got = connection.recv_into(buffer)
                if not got:
                    return
                rest += buffer[:got]
                at, before = 0, seen
                while len(rest) - at >= 4:
                    (size,) = struct.unpack_from(">i", rest, at)
                    if len(rest) - at < size + 4:
                        break
                    at += size + 4
                    seen += 1
                rest = rest[at:]
                for _ in range(seen // pieces - before // pieces):
                    slots.release()

        reader = threading.Thread(target=count_answers)
        began = time.perf_counter()
        reader.start()
        for _ in range(answers // pieces):
            if not slots.acquire(timeout=LONGEST_SILENCE_S):
                raise TimeoutError("the server has stopped to answer")
            connection.sendall(joined)
        reader.join()
        return time.perf_counter() - began


def drain(port: int, requests: list[bytes], ahead: int = 2) -> tuple[float, int]:
    """Sends each request in turn, ``ahead`` of them in flight, discards responses; returns seconds and bytes."""
    buffer = bytearray(8 << 20)
    total = 0
    with connected(port) as connection:
        began = time.perf_counter()
        for request in requests[:ahead]:
            connection.sendall(request)
        for index in range(len(requests)):
            total += receive(connection, buffer)
            if index + ahead < len(requests):
                connection.sendall(requests[index + ahead])
        return time.perf_counter() - began, total


def drain_raw(port: int, offsets: list[int], size: int, ahead: int = 2) -> tuple[float, int]:
    """Does the same with the bare reader, whose responses have no size in front."""
    buffer = memoryview(bytearray(size))
    total = 0
    with connected(port) as connection:
        began = time.perf_counter()
        for offset in offsets[:ahead]:
            connection.sendall(struct.pack(">qq", offset, size))
        for index in range(len(offsets)):
            have = 0
            while have < size:
                have += connection.recv_into(buffer[have:])
            total += have
            if index + ahead < len(offsets):
                connection.sendall(struct.pack(">qq", offsets[index + ahead], size))
        return time.perf_counter() - began, total
