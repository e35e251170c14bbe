"""A member of a consumer group in a simulation, which reads its partitions, and commits offsets (KIP-848).

Knows nothing of faults. The next owner of a partition starts from the last acknowledged commit or later.
"""

from typing import Any

from barnabas.errors import KafkaError
from barnabas.uuids import random_uuid, uuid_text
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from tests.simulation.clients import Consumer, Place, check
from tests.simulation.coordinated import GROUPS, CoordinatedClient, top_error

LEAVES = -1
"""The member epoch of a member that leaves."""
TURN_S = 0.3


class Committed:
    """The results of the commits of a group's members."""

    def __init__(self) -> None:
        self.offsets: dict[Place, int] = {}

    def acknowledged(self, place: Place, offset: int) -> None:
        self.offsets[place] = max(offset, self.offsets.get(place, 0))


class Member(CoordinatedClient):
    """A member of a group that subscribes to topics. A commit that may still be delivered late is never followed by
    another one: the member leaves the group, and joins it as a new one.
    """

    coordinator_type = GROUPS

    def __init__(self, *args: Any, group: str, topics: list[str], committed: Committed) -> None:
        super().__init__(*args)
        self.coordinator_key, self.topics, self.committed = group, topics, committed
        self.member_id, self.epoch = "", 0
        self.readers: dict[Place, Consumer] = {}
        self.read_by = 0

    async def run(self) -> None:
        while not self.is_stopping:
            self.member_id, self.epoch = uuid_text(random_uuid(self.random.randbytes)), 0
            self.readers.clear()
            try:
                while not self.is_stopping:
                    await self._heartbeat()
                    await self._work()
                    await self.pause(TURN_S)
            except KafkaError:
                await self.pause()
            await self._leave()

    # ------------------------------------------------------------ membership

    async def _heartbeat(self) -> None:
        answer = await self.insist(self._beat)
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            return
        names = {topic_id: topic for topic, topic_id in self.topic_ids.items()}
        assigned = [
            (names[each.topic_id], index)
            for each in answer.assignment.topic_partitions
            for index in each.partitions
            if each.topic_id in names
        ]
        for place in [each for each in self.readers if each not in assigned]:
            del self.readers[place]
        for place in assigned:
            if place not in self.readers:
                await self._take_over(place)

    async def _beat(self) -> Any:
        for topic in self.topics:
            if topic not in self.topic_ids:
                await self.refresh(topic)
        owned = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=self.topic_ids[topic], partitions=[index for name, index in self.readers if name == topic]
            )
            for topic in self.topics
        ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.coordinator_key,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=5_000,
            subscribed_topic_names=self.topics,
            topic_partitions=[each for each in owned if each.partitions],
        )
        return await self.ask_coordinator(request, top_error)

    async def _leave(self) -> None:
        """Leaves the group, however long it takes, so that earlier requests have no effect."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.coordinator_key, member_id=self.member_id, member_epoch=LEAVES
        )
        while True:
            try:
                await self.ask_coordinator(request, top_error)
            except KafkaError as error:
                if error.retriable:
                    await self.pause()
                    continue
            return

    # ------------------------------------------------------------ records and offsets

    async def _take_over(self, place: Place) -> None:
        """Continues from the group's offset. :raises KafkaError: it is not available"""
        least = self.committed.offsets.get(place, 0)
        offset = max(await self.insist(lambda: self._fetch_offset(place)), 0)
        if offset < least:
            raise AssertionError(f"{self.coordinator_key} is at {offset} of {place}; {least} was committed")
        self.read_by += 1
        reader = self.readers[place] = Consumer(
            f"{self.name}.{self.read_by}", self.cluster, self.history, self.random, places=[place]
        )
        reader.positions[place] = offset

    async def _fetch_offset(self, place: Place) -> int:
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        topic = kind.OffsetFetchRequestTopics(topic_id=self.topic_ids[place[0]], partition_indexes=[place[1]])
        group = kind(group_id=self.coordinator_key, member_id=self.member_id, member_epoch=self.epoch, topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        answer = await self.ask_coordinator(request, lambda answer: answer.groups[0].error_code)
        part = answer.groups[0].topics[0].partitions[0]
        check(part.error_code)
        return int(part.committed_offset)

    async def _work(self) -> None:
        """Reads each partition further, and commits. :raises KafkaError: the outcome of a commit is unknown"""
        for place, reader in list(self.readers.items()):
            before = reader.positions[place]
            if await reader.read(place) and reader.positions[place] > before:
                await self._commit(place, reader.positions[place])

    async def _commit(self, place: Place, offset: int) -> None:
        kind = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = kind.OffsetCommitRequestPartition(
            partition_index=place[1], committed_offset=offset, committed_metadata=None
        )
        request = OffsetCommitRequest(
            group_id=self.coordinator_key,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[kind(topic_id=self.topic_ids[place[0]], partitions=[partition])],
        )
        await self.ask_coordinator(request, lambda answer: answer.topics[0].partitions[0].error_code)
        self.committed.acknowledged(place, offset)
