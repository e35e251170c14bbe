"""``python -m benchmarks.codec [--rounds N]``: CPU time of our codec beside kafka-python's, in turns, in one process.

Knows nothing of the broker: bytes to messages and back.
"""

import argparse
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka.protocol.consumer.fetch import FetchRequest as TheirFetchRequest
from kafka.protocol.consumer.fetch import FetchResponse as TheirFetchResponse
from kafka.protocol.metadata.metadata import MetadataResponse as TheirMetadataResponse
from kafka.protocol.producer.produce import ProduceRequest as TheirProduceRequest
from kafka.protocol.producer.produce import ProduceResponse as TheirProduceResponse
from rich.console import Console
from rich.table import Table

from barnabas.wire.message import Message
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

SECONDS = 0.02  # of each figure in each round
TOPIC_IDS = [uuid.UUID(int=number + 1).bytes for number in range(1_000)]


class Case(NamedTuple):
    """A message at a version, its API, and kafka-python's class for it."""

    what: str
    message: Message
    version: int
    theirs: Any
    partitions: int = 1


def produce_request() -> ProduceRequest:
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=0, records=bytes(1_000))
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic(name="orders", partition_data=[partition])])


def produce_response() -> ProduceResponse:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse(index=0, base_offset=1, log_start_offset=0)
    return ProduceResponse(responses=[topic(name="orders", partition_responses=[partition])])


def fetch_request(topics: int, partitions: int) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    entries = [
        topic.FetchPartition(partition=index, fetch_offset=1, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    named = [topic(topic_id=TOPIC_IDS[index], partitions=entries) for index in range(topics)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, session_epoch=0, topics=named)


def fetch_response(topics: int, partitions: int) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse
    given = [
        topic.PartitionData(
            partition_index=index,
            high_watermark=1,
            last_stable_offset=1,
            log_start_offset=0,
            aborted_transactions=None,
            records=b"",
        )
        for index in range(partitions)
    ]
    return FetchResponse(responses=[topic(topic_id=TOPIC_IDS[index], partitions=given) for index in range(topics)])


def metadata_response() -> MetadataResponse:
    topic = MetadataResponse.MetadataResponseTopic
    partitions = [
        topic.MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        for index in range(10)
    ]
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="localhost", port=9092)
    topics = [topic(name=f"topic-{index}", topic_id=TOPIC_IDS[index], partitions=partitions) for index in range(100)]
    return MetadataResponse(brokers=[broker], cluster_id="a-cluster", controller_id=1, topics=topics)


CASES = [
    Case("Produce, one partition", produce_request(), 9, TheirProduceRequest),
    Case("Produce answer, one partition", produce_response(), 9, TheirProduceResponse),
    Case("Fetch of a session, nothing new", fetch_request(0, 0), 17, TheirFetchRequest),
    Case("Fetch answer of a session, nothing new", fetch_response(0, 0), 17, TheirFetchResponse),
    Case("Fetch, 1,000 partitions of 10 topics", fetch_request(10, 100), 17, TheirFetchRequest, 1_000),
    Case("Fetch, 1,000 topics of one partition", fetch_request(1_000, 1), 17, TheirFetchRequest, 1_000),
    Case("Fetch answer, 1,000 partitions of 10 topics", fetch_response(10, 100), 17, TheirFetchResponse, 1_000),
    Case("Metadata answer, 1,000 partitions of 100 topics", metadata_response(), 12, TheirMetadataResponse, 1_000),
]


def microseconds(call: Callable[[], Any]) -> float:
    """Returns the CPU time of one call, averaged over SECONDS; other processes do not count."""
    calls, start = 0, time.process_time()
    while (passed := time.process_time() - start) < SECONDS:
        for _ in range(5):
            call()
        calls += 5
    return passed / calls * 1e6


def contenders(case: Case) -> dict[str, Callable[[], Any]]:
    """Returns our function and theirs for each direction; asserts that the bytes are the same."""
    version, cls, message, theirs = case.version, type(case.message), case.message, case.theirs
    data = message.encode(version=version)
    frame = memoryview(bytearray(data))
    other = theirs.decode(data, version=version)
    assert bytes(other.encode()) == data, f"{cls.__name__} v{version}"
    return {
        "decode": lambda: cls.decode(frame, version=version),
        "their decode": lambda: theirs.decode(frame, version=version),
        "encode": lambda: message.encode(version=version),
        "their encode": other.encode,
    }


def measured(rounds: int) -> dict[str, dict[str, float]]:
    """Returns medians over the rounds; each round runs all of them in turn."""
    taken: dict[str, dict[str, list[float]]] = {}
    calls = {case.what: contenders(case) for case in CASES}
    for _ in range(rounds):
        for what, each in calls.items():
            for name, call in each.items():
                taken.setdefault(what, {}).setdefault(name, []).append(microseconds(call))
    return {what: {name: statistics.median(times) for name, times in each.items()} for what, each in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each; medians are printed (default 7)")
    found = measured(parser.parse_args().rounds)
    table = Table("message", "", "us", "us a partition", "kafka-python", "ratio")
    for case in CASES:
        for way in ("decode", "encode"):
            ours, theirs = found[case.what][way], found[case.what][f"their {way}"]
            each = f"{ours / case.partitions:.2f}"
            table.add_row(
                f"{case.what} (v{case.version})", way, f"{ours:.1f}", each, f"{theirs:.1f}", f"{theirs / ours:.1f}x"
            )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
