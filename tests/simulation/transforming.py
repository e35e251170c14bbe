"""Consume, transform, produce in a simulation: the outputs and the offsets of the inputs are in one transaction.

Knows nothing of faults, nor of groups but the offsets. Each input has one output, whoever of the group has made it.
"""

from collections.abc import Callable

from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.history.records import Send
from tests.simulation.clients import Place
from tests.simulation.generations import of_older
from tests.simulation.groups import GroupMember
from tests.simulation.transactional import TransactionalProducer

MOST = 5
"""The number of inputs of a transaction at most."""


class Transforms:
    """The work of a member: a transaction for what it has read of a partition.

    After any error the producer is initialised anew, which ends its open transaction, before offsets are fetched.
    """

    def __init__(self, producer: TransactionalProducer, outputs: list[Place], values: Callable[[], int]) -> None:
        self.producer, self.outputs, self.values = producer, outputs, values

    async def begin(self, member: GroupMember) -> None:
        await self.producer.init()

    async def work(self, member: GroupMember) -> None:
        for place in list(member.readers):
            if await member.read(place):
                await self._transform(member, place)

    async def _transform(self, member: GroupMember, place: Place) -> None:
        """Runs a transaction. :raises KafkaError: it has failed, or its outcome is unknown"""
        reader, producer, chance = member.readers[place], self.producer, member.random
        offset = reader.positions[place]
        if len(reader.found) > MOST:
            offset = reader.positions[place] = reader.found[MOST][1]
            del member.readers[place]  # it reads the others again, as another reader
        is_committed = chance.random() < 0.8
        await producer.begin()
        with producer.transaction() as operation:
            for _, _, value in reader.found[:MOST]:
                output = chance.choice(self.outputs)
                send = Send(f"{output[0]}-{output[1]}", self.values(), source=value)
                await producer.send(output, [send], operation)
            await producer.add_group(member.group.name)
            await producer.insist(lambda: self._commit(member, place, offset))
            await producer.end(operation, committed=is_committed)
        if is_committed:
            member.group.acknowledged(place, offset)
        if not is_committed or place not in member.readers:
            await member.take_over(place)

    async def _commit(self, member: GroupMember, place: Place, offset: int) -> None:
        """Adds the offset to the transaction. :raises KafkaError: it is not known to be in it"""
        kind = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        partition = kind.TxnOffsetCommitRequestPartition(
            partition_index=place[1], committed_offset=offset, committed_metadata=None
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.producer.name,
            group_id=member.group.name,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            generation_id_or_member_epoch=member.epoch,
            member_id=member.member_id,
            topics=[kind(name=place[0], topic_id=member.topic_ids[place[0]], partitions=[partition])],
        )
        if not self.producer.generation.is_newer:
            of_older(request)
        await member.ask_coordinator(request, lambda answer: answer.topics[0].partitions[0].error_code)
