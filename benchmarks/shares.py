"""The cost of a share group: members fetch and accept its records in turn, beside Apache Kafka.

Knows nothing of the states of a record in a broker. The client sends raw frames over a blocking socket: each
ShareFetch accepts the records of the one before, until there are none.
"""

import base64
import contextlib
import shutil
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from barnabas.wire.message import Request, Response
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from benchmarks import load, servers
from benchmarks.measure import Row
from benchmarks.transactions import framed

TOPIC, GROUP, MEMBER = "bench", "bench", "member"
SHARE = 2  #: the coordinator type of FindCoordinator
BATCH_BYTES, RECORD_BYTES = 16 << 10, 1024
VERSION = 2
ACCEPT = 1
SIZES = {500: 16_000, 10: 4000}
"""Records that a member requests at a time (the Java client's default, a worker's), and batches in the topic."""

FetchTopic = ShareFetchRequest.FetchTopic
FetchPartition = FetchTopic.FetchPartition
Acquired = list[tuple[int, int]]


class Member:
    """One member of the group, which alone has the partition."""

    def __init__(self, connection: socket.socket, topic_id: bytes, max_records: int) -> None:
        self.connection = connection
        self.topic_id = topic_id
        self.max_records = max_records
        self.buffer = bytearray(4 << 20)
        self.epoch = 0
        self.acquired: Acquired = []

    def fetch(self) -> int:
        """Accepts the acquired records, and fetches more; returns their number."""
        partition = FetchPartition(
            partition_index=0,
            acknowledgement_batches=[
                FetchPartition.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[ACCEPT])
                for first, last in self.acquired
            ],
        )
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=MEMBER,
            share_session_epoch=self.epoch,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self.max_records,
            batch_size=self.max_records,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=[partition])],
            forgotten_topics_data=[],
        )
        self.epoch += 1
        answer = ask(self.connection, request, VERSION, ShareFetchResponse, self.buffer)
        assert not answer.error_code, answer
        found = [each for topic in answer.responses for each in topic.partitions]
        assert not any(each.error_code or each.acknowledge_error_code for each in found), found
        self.acquired = [(one.first_offset, one.last_offset) for each in found for one in each.acquired_records]
        return sum(last - first + 1 for first, last in self.acquired)


R = TypeVar("R", bound=Response)


def ask(connection: socket.socket, request: Request, version: int, answered: type[R], buffer: bytearray) -> R:
    """Sends a request; its version must have tagged fields."""
    connection.sendall(framed(request, version))
    size = load.receive(connection, buffer)
    return answered.decode(memoryview(buffer)[9:size], version=version)


def prepare(port: int, batches: int) -> bytes:
    """Makes a topic with batches that the group reads from its start; returns the topic's id."""
    load.create_topic(port, TOPIC)
    frame = load.produce_frame(TOPIC, BATCH_BYTES).data
    load.pump(port, frame, batches, depth=8)
    buffer = bytearray(1 << 20)
    with load.connected(port) as connection:
        topics = [MetadataRequest.MetadataRequestTopic(name=TOPIC)]
        found = ask(connection, MetadataRequest(topics=topics), 12, MetadataResponse, buffer)
        topic_id = bytes(found.topics[0].topic_id)
        data = InitializeShareGroupStateRequest.InitializeStateData
        request = InitializeShareGroupStateRequest(
            group_id=GROUP,
            topics=[
                data(
                    topic_id=topic_id,
                    partitions=[data.PartitionData(partition=0, state_epoch=0, start_offset=0)],
                )
            ],
        )
        key = f"{GROUP}:{base64.urlsafe_b64encode(topic_id).decode().rstrip('=')}:0"
        find = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
        deadline = time.monotonic() + load.LONGEST_SILENCE_S
        while time.monotonic() < deadline:
            # The broker may have to create the coordinator's topic first.
            coordinator = ask(connection, find, 6, FindCoordinatorResponse, buffer).coordinators[0]
            if not coordinator.error_code:
                begun = ask(connection, request, 0, InitializeShareGroupStateResponse, buffer)
                if not begun.results[0].partitions[0].error_code:
                    return topic_id
            time.sleep(0.05)
    raise TimeoutError("there is no share coordinator")


def consumed(running: servers.Running, batches: int, max_records: int) -> tuple[float, float]:
    """Returns records a second, and CPU seconds of the broker for a million of them."""
    records = batches * (BATCH_BYTES // RECORD_BYTES)
    topic_id = prepare(running.port, batches)
    with load.connected(running.port) as connection:
        member = Member(connection, topic_id, max_records)
        member.fetch()
        given = member.fetch()
        cpu, began = running.cpu_s(), time.perf_counter()
        measured = 0
        while given < records * 0.95:
            got = member.fetch()
            given += got
            measured += got
        seconds, spent = time.perf_counter() - began, running.cpu_s() - cpu
    return measured / seconds, spent * 1e6 / measured


def throughput(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures the records a second that one member accepts, and their cost, by the number of requested records."""
    starts: dict[str, Callable[[Path], contextlib.AbstractContextManager[servers.Running]]]
    starts = {"Barnabas": servers.barnabas}
    if shutil.which("java"):
        starts["Apache"] = servers.apache
    for max_records, batches in SIZES.items():
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in starts}
        for index in range(rounds):
            for name, start in starts.items():
                with start(folder / f"share-{name}-{max_records}-{index}") as running:
                    found[name].append(consumed(running, batches, max_records))
        medians = {
            name: [statistics.median(each) for each in zip(*pairs, strict=True)] for name, pairs in found.items()
        }
        (rate, cpu), (their_rate, their_cpu) = medians["Barnabas"], medians.get("Apache", (0.0, 0.0))
        what = f"share group, {max_records} records at a time"
        yield row(f"{what}, records/s", rate, their_rate, 0, at_least=1.1)
        yield row(f"{what}, CPU s a million", cpu, their_cpu, 2, at_most=0.8)


def row(
    what: str, ours: float, theirs: float, digits: int, *, at_least: float | None = None, at_most: float | None = None
) -> Row:
    """Returns the row, compared with Apache Kafka if it is installed."""
    ratio = ours / theirs if theirs else None
    baseline = f"Apache {theirs:,.{digits}f}" if theirs else ""
    budget = f">= {at_least}x" if at_least is not None else f"<= {at_most}x"
    holds = None if ratio is None else ratio >= at_least if at_least is not None else ratio <= (at_most or 0)
    return Row(what, f"{ours:,.{digits}f}", baseline, ratio, budget, holds)
