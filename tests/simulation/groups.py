"""A member of a group in a simulation: it reads its partitions, and goes on where the group has come to.

Knows nothing of faults, nor of how members join. The next owner of a partition starts from the last acknowledged commit
or later.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from barnabas.errors import KafkaError, UnsupportedVersion
from barnabas.wire.message import Request
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from tests.simulation.clients import Consumer, Place, check
from tests.simulation.coordinated import GROUPS, CoordinatedClient, top_error

TURN_S = 0.3


@dataclass
class Group:
    """A group, and what its members know of it."""

    name: str
    places: list[Place]
    committed: dict[Place, int] = field(default_factory=dict)  #: acknowledged offsets
    owners: dict[tuple[int, Place], str] = field(default_factory=dict)  #: by generation and partition

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.places})

    def acknowledged(self, place: Place, offset: int) -> None:
        self.committed[place] = max(offset, self.committed.get(place, 0))

    def own(self, generation: int, place: Place, member_id: str) -> None:
        """Records the owner of a partition. :raises AssertionError: another member owns it in that generation"""
        other = self.owners.setdefault((generation, place), member_id)
        if other != member_id:
            raise AssertionError(f"{other} and {member_id} of {self.name} own {place} in generation {generation}")


class OffsetsClient(CoordinatedClient):
    """A client that asks for the offsets of a group."""

    coordinator_type = GROUPS
    knows_epochs = False  #: whether OffsetFetch names the member and its epoch

    def __init__(self, *args: Any, group: Group) -> None:
        super().__init__(*args)
        self.group, self.coordinator_key = group, group.name
        self.member_id, self.epoch = "", -1

    async def fetch_offset(self, place: Place) -> int:
        """Returns the committed offset of a partition, without an open transaction. :raises KafkaError: as it says"""
        if place[0] not in self.topic_ids:
            await self.refresh(place[0])
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        topic = kind.OffsetFetchRequestTopics(topic_id=self.topic_ids[place[0]], partition_indexes=[place[1]])
        group = kind(group_id=self.group.name, topics=[topic])
        if self.knows_epochs:
            group.member_id, group.member_epoch = self.member_id, self.epoch
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        answer = await self.ask_coordinator(request, lambda answer: answer.groups[0].error_code)
        part = answer.groups[0].topics[0].partitions[0]
        check(part.error_code)
        return max(int(part.committed_offset), 0)

    async def offsets(self) -> dict[Place, int]:
        """Returns all committed offsets. :raises KafkaError: they are not available for a long time"""
        return {place: await self._insist_on_offset(place) for place in self.group.places}

    async def _insist_on_offset(self, place: Place) -> int:
        return int(await self.insist(lambda: self.fetch_offset(place)))


class GroupMember(OffsetsClient):
    """A member of a group that subscribes to topics. A commit that may still be delivered late is never followed by
    another one: the member leaves the group, and joins it as a new one.
    """

    def __init__(self, *args: Any, group: Group, job: "Job | None" = None) -> None:
        super().__init__(*args, group=group)
        self.job = job or Commits()
        self.readers: dict[Place, Consumer] = {}
        self.read_by = 0

    async def join(self) -> None:
        """Joins the group as a new member. :raises KafkaError: it cannot"""
        raise NotImplementedError

    async def stay(self) -> None:
        """Stays in the group, with the partitions that are assigned now. :raises KafkaError: it is out of the group"""
        raise NotImplementedError

    def goodbye(self) -> Request:
        """Returns the request with which it leaves the group."""
        raise NotImplementedError

    async def run(self) -> None:
        while not self.is_stopping:
            self.readers.clear()
            try:
                await self.job.begin(self)
                await self.join()
                while not self.is_stopping:
                    await self.stay()
                    await self.job.work(self)
                    await self.pause(TURN_S)
            except KafkaError:
                await self.pause()
            await self._leave()

    async def _leave(self) -> None:
        """Leaves the group, however long it takes, so that earlier requests have no effect."""
        while True:
            try:
                await self.ask_coordinator(self.goodbye(), top_error)
            except KafkaError as error:
                if error.retriable or isinstance(error, UnsupportedVersion):  # its protocol may be switched off
                    await self.pause()
                    continue
            return

    # ------------------------------------------------------------ records and offsets

    async def own(self, places: list[Place]) -> None:
        """Goes on with these partitions only. :raises KafkaError: an offset is not available"""
        for place in [each for each in self.readers if each not in places]:
            del self.readers[place]
        for place in places:
            self.group.own(self.epoch, place, self.member_id)
            if place not in self.readers:
                await self.take_over(place)

    async def take_over(self, place: Place) -> None:
        """Continues from the group's offset. :raises KafkaError: it is not available"""
        least = self.group.committed.get(place, 0)
        offset = await self._insist_on_offset(place)
        if offset < least:
            raise AssertionError(f"{self.group.name} is at {offset} of {place}; {least} was committed")
        self.read_by += 1
        reader = self.readers[place] = Consumer(
            f"{self.name}.{self.read_by}", self.cluster, self.history, self.random, places=[place]
        )
        reader.positions[place] = offset

    async def read(self, place: Place) -> bool:
        """Reads a partition further. Returns whether its position has changed."""
        reader = self.readers[place]
        before = reader.positions[place]
        return await reader.read(place) and reader.positions[place] > before

    async def commit(self, place: Place) -> None:
        """Commits the position in a partition. :raises KafkaError: the outcome is unknown"""
        offset = self.readers[place].positions[place]
        kind = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = kind.OffsetCommitRequestPartition(
            partition_index=place[1], committed_offset=offset, committed_metadata=None
        )
        request = OffsetCommitRequest(
            group_id=self.group.name,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[kind(topic_id=self.topic_ids[place[0]], partitions=[partition])],
        )
        await self.ask_coordinator(request, lambda answer: answer.topics[0].partitions[0].error_code)
        self.group.acknowledged(place, offset)


class Job(Protocol):
    """What a member does with its partitions."""

    async def begin(self, member: GroupMember) -> None:
        """Prepares the work of a new member. :raises KafkaError: it cannot"""

    async def work(self, member: GroupMember) -> None:
        """Goes on with each partition. :raises KafkaError: the outcome of a commit is unknown"""


class Commits:
    """Reads each partition further, and commits its position."""

    async def begin(self, member: GroupMember) -> None:
        """Does nothing."""

    async def work(self, member: GroupMember) -> None:
        for place in list(member.readers):
            if await member.read(place):
                await member.commit(place)
