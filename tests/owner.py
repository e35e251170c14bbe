"""A transactional producer on a plain socket, which sends one request at a time as the test demands.

It can also do things that no client does, such as writing to a partition that is not in its transaction.
"""

import time
from collections.abc import Callable
from typing import Any

from barnabas.errors import KafkaError
from barnabas.records.builder import build_batch
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.raw import Client

DEADLINE_SECONDS = 60
HOUR_MS = 3_600_000

Partition = ProduceRequest.TopicProduceData.PartitionProduceData


class Owner:
    """The producer, of the first generation of transactions (KIP-98)."""

    def __init__(self, client: Client, transactional_id: str, timeout_ms: int = 600_000) -> None:
        self.client, self.transactional_id = client, transactional_id
        finding = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)

        def ask() -> Any:
            client.ask(finding, 6)
            return client.ask(request, 4)

        answer = retried(ask, lambda answer: answer.error_code)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def begin(self, topic: str, partitions: list[int]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
        )

        def worst(answer: Any) -> int:
            (result,) = answer.results_by_topic_v3_and_below
            return max(each.partition_error_code for each in result.results_by_partition)

        retried(lambda: self.client.ask(request, 3), worst)

    def end(self, *, committed: bool) -> int:
        """Returns the error code of the response."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        answer: Any = self.client.ask(request, 4)
        return int(answer.error_code)

    def write(self, topic: str, partition: int, value: bytes, ago_ms: int = 0) -> int:
        """Writes the first batch of the transaction, added to it or not. Returns its offset."""
        producer = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": 0, "is_transactional": True}
        return produce(self.client, topic, partition, value, ago_ms, self.transactional_id, **producer)


def produce(
    client: Client, topic: str, partition: int, value: bytes, ago_ms: int = 0, owner: str | None = None, **producer: Any
) -> int:
    """Writes one record with this age. Returns its offset."""
    batch = build_batch([(None, value, int(time.time() * 1000) - ago_ms)], **producer)
    data = ProduceRequest.TopicProduceData(
        name=topic, partition_data=[Partition(index=partition, records=bytes(batch))]
    )
    request = ProduceRequest(transactional_id=owner, acks=-1, timeout_ms=30_000, topic_data=[data])

    def ask() -> Any:
        answer: Any = client.ask(request, 9)
        ((result,),) = (each.partition_responses for each in answer.responses)
        return result

    return int(retried(ask, lambda result: result.error_code).base_offset)


def retried(ask: Callable[[], Any], error_code: Callable[[Any], int]) -> Any:
    """Repeats the request until there is no retriable error: Apache Kafka creates logs later."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        answer = ask()
        code = error_code(answer)
        if not code or not KafkaError.by_code[code].retriable or time.monotonic() > deadline:
            assert code == 0, f"error {code}"
            return answer
        time.sleep(0.05)
