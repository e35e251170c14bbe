"""A transactional producer of a simulation, which writes to several partitions, and commits or aborts (KIP-98,
KIP-890).

Knows nothing of faults. Its transactions are in the history with their outcomes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.errors import DuplicateSequenceNumber, KafkaError
from barnabas.records.builder import build_batch
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.history.records import FAIL, INFO, OK, TRANSACTION, Operation, Send
from tests.simulation.clients import REQUEST_MS, Place, ask_versions, check
from tests.simulation.coordinated import TRANSACTIONS, CoordinatedClient, top_error
from tests.simulation.generations import Generation, of_older

RATE_S = 0.2
LOOKS = 0.3
"""The share of transactions before which a producer sees the features of a broker, as it does with a new connection."""


class TransactionalProducer(CoordinatedClient):
    """One transaction after the other, with its own transactional id.

    A failed transaction is aborted by InitProducerId, as clients do. A commit with an unknown outcome is recorded as
    one that may have taken effect.

    :param follows: whether it uses the newer generation of the protocol where the cluster does
    """

    coordinator_type = TRANSACTIONS

    def __init__(
        self, *args: Any, places: list[Place], values: Callable[[], int], follows: bool, timeout_ms: int = 10_000
    ) -> None:
        super().__init__(*args)
        self.places, self.values, self.timeout_ms = places, values, timeout_ms
        self.generation = Generation(follows=follows)
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[Place, int] = defaultdict(int)
        self.added: set[Place | str] = set()  #: partitions and groups that were added to the transaction
        self.coordinator_key = self.name

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                await self.init()
                while not self.is_stopping:
                    await self._work()
                    await self.pause(RATE_S)
            except KafkaError:
                await self.pause()

    # ------------------------------------------------------------ requests

    async def init(self) -> None:
        """Ends what is open, and begins anew. :raises KafkaError: it cannot"""
        await self._init(-1, -1)
        if self.generation.follows:
            await self.insist(self._learn)

    async def _init(self, producer_id: int, epoch: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        self._go_on(await self.insist(lambda: self.ask_coordinator(request, top_error)))

    async def _learn(self) -> None:
        """Learns the cluster's features of some broker. :raises KafkaError: it does not answer"""
        answer = await self.ask(self.random.choice(self.brokers), ask_versions())
        check(answer.error_code)
        self.generation.learn(answer)

    def _go_on(self, answer: Any) -> None:
        if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    # ------------------------------------------------------------ transactions

    async def begin(self) -> None:
        """Gets ready for the next transaction: the newer generation begins with another epoch (KIP-360).

        :raises KafkaError: it cannot
        """
        self.added.clear()
        generation = self.generation
        if not generation.follows or self.random.random() > LOOKS:
            return
        was_newer = generation.is_newer
        await self.insist(self._learn)
        if generation.is_newer and not was_newer:
            await self._init(self.producer_id, self.epoch)

    @contextmanager
    def transaction(self) -> Iterator[Operation]:
        """Records a transaction in the history when it ends."""
        producer = f"{self.name}/{self.producer_id}/{self.epoch}"
        operation = Operation(self.name, TRANSACTION, FAIL, self.loop.now, producer=producer)
        try:
            yield operation
        finally:
            operation.end = self.loop.now
            self.history.add(operation)

    async def _work(self) -> None:
        """Runs one transaction. :raises KafkaError: it has failed, or its outcome is unknown"""
        await self.begin()
        with self.transaction() as operation:
            for _ in range(self.random.choice((1, 2, 3, 5))):
                place = self.random.choice(self.places)
                count = self.random.choice((1, 1, 2))
                sends = [Send(f"{place[0]}-{place[1]}", self.values()) for _ in range(count)]
                await self.send(place, sends, operation)
                if self.random.random() < 0.3:
                    await self.pause()
            await self.end(operation, committed=self.random.random() < 0.7)

    async def send(self, place: Place, sends: list[Send], operation: Operation) -> None:
        """Sends a batch. :raises KafkaError: it is not acknowledged"""
        operation.sends += sends
        data = build_batch(
            [(None, str(send.value).encode(), self.clock.time_ms()) for send in sends],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences[place],
            is_transactional=True,
        )
        self.sequences[place] += len(sends)
        if not self.generation.is_newer and place not in self.added:
            await self._add(place)
        base_offset = await self.insist(lambda: self._produce(place, bytes(data)))
        for index, send in enumerate(sends):
            send.offset = base_offset + index if base_offset >= 0 else -1

    async def _produce(self, place: Place, data: bytes) -> int:
        """Sends a batch. Returns its offset, -1 if it is unknown. :raises KafkaError: it is not acknowledged"""
        part = ProduceRequest.TopicProduceData.PartitionProduceData(index=place[1], records=memoryview(data))
        try:
            leader = await self.leader(*place)
            topic = ProduceRequest.TopicProduceData(
                name=place[0], topic_id=self.topic_ids[place[0]], partition_data=[part]
            )
            request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=REQUEST_MS, topic_data=[topic])
            if not self.generation.is_newer:
                of_older(request)
            response = (await self.ask(leader, request)).responses[0].partition_responses[0]
            if response.error_code == DuplicateSequenceNumber.code:
                return -1
            check(response.error_code)
        except KafkaError:
            self.leaders.pop(place, None)
            raise
        return int(response.base_offset)

    async def end(self, operation: Operation, *, committed: bool) -> None:
        """Ends the transaction. :raises KafkaError: its outcome is unknown"""
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=committed
        )
        is_newer = self.generation.is_newer
        if not is_newer:
            of_older(request)
        if committed:
            operation.commit_at, operation.outcome = self.loop.now, INFO
        answer = await self.insist(lambda: self.ask_coordinator(request, top_error))
        if is_newer:
            self._go_on(answer)
        if committed:
            operation.outcome = OK

    # ------------------------------------------------------------ what the older generation adds by itself

    async def _add(self, place: Place) -> None:
        """Adds a partition to the transaction. :raises KafkaError: it is not known to be in it"""
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=place[0], partitions=[place[1]])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )
        await self.insist(lambda: self.ask_coordinator(of_older(request), _partition_error))
        self.added.add(place)

    async def add_group(self, group: str) -> None:
        """Adds the offsets of a group to the transaction. :raises KafkaError: they are not known to be in it"""
        if self.generation.is_newer or group in self.added:
            return
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=group
        )
        await self.insist(lambda: self.ask_coordinator(of_older(request), top_error))
        self.added.add(group)


def _partition_error(answer: Any) -> int:
    """Returns the error of the only partition of an AddPartitionsToTxn."""
    return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
