"""How members of a simulation join groups: consumer groups (KIP-848), streams groups (KIP-1071) and classic ones.

Knows nothing of what members do with their partitions.
"""

from typing import Any

from barnabas.errors import MemberIdRequired, RebalanceInProgress
from barnabas.uuids import random_uuid, uuid_text
from barnabas.wire.message import Request
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from tests.simulation.clients import Place
from tests.simulation.coordinated import top_error
from tests.simulation.groups import GroupMember

LEAVES = -1
"""The member epoch of a member that leaves."""
SUBTOPOLOGY = "0"
SESSION_MS = 4_000
REBALANCE_MS = 2_000
"""Less than the timeout of a request, which a member waits for the others with."""
PROTOCOL_TYPE, PROTOCOL, PROTOCOL_VERSION = "consumer", "range", 1


class AssignedMember(GroupMember):
    """A member whose coordinator assigns partitions to it, in the responses to its heartbeats."""

    knows_epochs = True

    async def join(self) -> None:
        self.member_id, self.epoch = uuid_text(random_uuid(self.random.randbytes)), 0

    async def stay(self) -> None:
        answer = await self.insist(self._beat)
        self.epoch = answer.member_epoch
        assigned = self.assigned(answer)
        if assigned is not None:
            await self.own(assigned)

    async def _beat(self) -> Any:
        for topic in self.group.topics:
            if topic not in self.topic_ids:
                await self.refresh(topic)
        return await self.ask_coordinator(self.heartbeat(), top_error)

    def heartbeat(self) -> Request:
        """Returns the next heartbeat, with the partitions that it owns."""
        raise NotImplementedError

    def assigned(self, answer: Any) -> list[Place] | None:
        """Returns the partitions that are assigned to it now; None if nothing has changed."""
        raise NotImplementedError


class ConsumerMember(AssignedMember):
    """A member of a consumer group (KIP-848)."""

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        owned = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=self.topic_ids[topic], partitions=[index for name, index in self.readers if name == topic]
            )
            for topic in self.group.topics
        ]
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group.name,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=5_000,
            subscribed_topic_names=self.group.topics,
            topic_partitions=[each for each in owned if each.partitions],
        )

    def assigned(self, answer: Any) -> list[Place] | None:
        if answer.assignment is None:
            return None
        names = {topic_id: topic for topic, topic_id in self.topic_ids.items()}
        return [
            (names[each.topic_id], index)
            for each in answer.assignment.topic_partitions
            for index in each.partitions
            if each.topic_id in names
        ]

    def goodbye(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(group_id=self.group.name, member_id=self.member_id, member_epoch=LEAVES)


class StreamsMember(AssignedMember):
    """A member of a streams group with one subtopology, whose tasks are the partitions of its topic (KIP-1071)."""

    def heartbeat(self) -> StreamsGroupHeartbeatRequest:
        kind = StreamsGroupHeartbeatRequest
        owned = sorted(index for _, index in self.readers)
        return kind(
            group_id=self.group.name,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=-1,
            rebalance_timeout_ms=5_000,
            process_id=self.name,
            topology=self._topology() if self.epoch == 0 else None,
            active_tasks=[kind.TaskIds(subtopology_id=SUBTOPOLOGY, partitions=owned)] if owned else [],
            standby_tasks=[],
            warmup_tasks=[],
        )

    def assigned(self, answer: Any) -> list[Place] | None:
        (topic,) = self.group.topics
        tasks = answer.active_tasks
        return None if tasks is None else [(topic, index) for each in tasks for index in each.partitions]

    def _topology(self) -> StreamsGroupHeartbeatRequest.Topology:
        kind = StreamsGroupHeartbeatRequest.Topology
        subtopology = kind.Subtopology(
            subtopology_id=SUBTOPOLOGY,
            source_topics=self.group.topics,
            source_topic_regex=[],
            state_changelog_topics=[],
            repartition_sink_topics=[],
            repartition_source_topics=[],
            copartition_groups=[],
        )
        return kind(epoch=0, subtopologies=[subtopology])

    def goodbye(self) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(
            group_id=self.group.name,
            member_id=self.member_id,
            member_epoch=LEAVES,
            endpoint_information_epoch=-1,
        )


class ClassicMember(GroupMember):
    """A member of a classic group: one of the members assigns partitions, and all give theirs up in a rebalance."""

    async def join(self) -> None:
        self.member_id = ""
        await self._join()

    async def _join(self) -> None:
        """Joins, and takes the partitions of the new generation. :raises KafkaError: the member is out of the group"""
        for topic in self.group.topics:
            if topic not in self.topic_ids:
                await self.insist(lambda topic=topic: self.refresh(topic))  # type: ignore[misc]
        while True:
            self.readers.clear()
            try:
                joined = await self.insist(lambda: self.ask_coordinator(self._join_request(), self._note_id))
                self.epoch = joined.generation_id
                synced = await self._sync(self._sync_request(joined))
            except (MemberIdRequired, RebalanceInProgress):
                continue
            assignment = ConsumerProtocolAssignment.decode_prefixed(synced.assignment)
            await self.own(
                [(each.topic, index) for each in assignment.assigned_partitions for index in each.partitions]
            )
            return

    async def _sync(self, request: SyncGroupRequest) -> Any:
        return await self.insist(lambda: self.ask_coordinator(request, top_error))

    def _note_id(self, answer: Any) -> int:
        self.member_id = answer.member_id or self.member_id
        return top_error(answer)

    def _join_request(self) -> JoinGroupRequest:
        metadata = ConsumerProtocolSubscription(topics=self.group.topics).encode_prefixed(PROTOCOL_VERSION)
        return JoinGroupRequest(
            group_id=self.group.name,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL, metadata=metadata)],
        )

    def _sync_request(self, joined: Any) -> SyncGroupRequest:
        request = SyncGroupRequest(
            group_id=self.group.name,
            generation_id=self.epoch,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=[],
        )
        if joined.leader == self.member_id:
            members = sorted(each.member_id for each in joined.members)
            for number, member_id in enumerate(members):
                assignment = _encoded(self.group.places[number :: len(members)])
                request.assignments.append(
                    SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                )
        return request

    async def stay(self) -> None:
        request = HeartbeatRequest(group_id=self.group.name, generation_id=self.epoch, member_id=self.member_id)
        try:
            await self.insist(lambda: self.ask_coordinator(request, top_error))
        except RebalanceInProgress:
            await self._join()

    def goodbye(self) -> LeaveGroupRequest:
        return LeaveGroupRequest(
            group_id=self.group.name, members=[LeaveGroupRequest.MemberIdentity(member_id=self.member_id)]
        )


def _encoded(places: list[Place]) -> bytes:
    kind = ConsumerProtocolAssignment.TopicPartition
    topics = [kind(topic=topic, partitions=[index]) for topic, index in places]
    return ConsumerProtocolAssignment(assigned_partitions=topics).encode_prefixed(PROTOCOL_VERSION)
