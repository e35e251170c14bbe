"""Members of a share group in a simulation: they acquire records and accept, release, reject or forget them (KIP-932).

Knows nothing of faults. A record whose acceptance was acknowledged is never acquired again, and each record is acquired
by somebody.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from barnabas.errors import KafkaError
from barnabas.uuids import random_uuid, uuid_text
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.simulation.clients import PAUSE_S, Place, check
from tests.simulation.coordinated import GROUPS, CoordinatedClient, top_error

LEAVES = -1
TURN_S = 0.3
MOST = 20
"""The number of records that a request acquires at most."""
ACCEPT, RELEASE, REJECT = 1, 2, 3


@dataclass
class ShareGroup:
    """A share group, and what became of its records."""

    name: str
    topics: list[str]
    acquired: dict[Place, set[int]] = field(default_factory=lambda: defaultdict(set))
    accepted: dict[Place, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    """By partition and offset, when the acceptance was acknowledged."""

    def acquire(self, place: Place, first: int, last: int, start: float) -> None:
        """Records what a request has acquired. :raises AssertionError: it was accepted before it was asked for"""
        for offset in range(first, last + 1):
            if self.accepted[place].get(offset, start) < start:
                raise AssertionError(f"{self.name} has accepted {offset} of {place}, and gets it again")
        self.acquired[place].update(range(first, last + 1))

    def accept(self, place: Place, first: int, last: int, now: float) -> None:
        for offset in range(first, last + 1):
            self.accepted[place].setdefault(offset, now)


@dataclass
class Session:
    """A share session with a leader."""

    places: frozenset[Place]
    epoch: int = 0


class ShareMember(CoordinatedClient):
    """A member of a share group. What it does not acknowledge is somebody's when the lock expires."""

    coordinator_type = GROUPS

    def __init__(self, *args: Any, group: ShareGroup, is_thorough: bool = False) -> None:
        """:param is_thorough: whether it accepts all that it gets"""
        super().__init__(*args)
        self.group, self.is_thorough = group, is_thorough
        self.coordinator_key = group.name
        self.member_id, self.epoch = "", 0
        self.assigned: list[Place] = []
        self.sessions: dict[int, Session] = {}  #: by leader

    async def run(self) -> None:
        while not self.is_stopping:
            self.member_id, self.epoch = uuid_text(random_uuid(self.random.randbytes)), 0
            self.assigned = []
            self.sessions.clear()
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
        for topic in self.group.topics:
            if topic not in self.topic_ids:
                await self.insist(lambda topic=topic: self.refresh(topic))  # type: ignore[misc]
        request = ShareGroupHeartbeatRequest(
            group_id=self.group.name,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=self.group.topics,
        )
        answer = await self.insist(lambda: self.ask_coordinator(request, top_error))
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            names = {topic_id: topic for topic, topic_id in self.topic_ids.items()}
            found = answer.assignment.topic_partitions
            self.assigned = [
                (names[each.topic_id], index) for each in found if each.topic_id in names for index in each.partitions
            ]

    async def _leave(self) -> None:
        """Leaves the group, or is out of it after its session."""
        request = ShareGroupHeartbeatRequest(group_id=self.group.name, member_id=self.member_id, member_epoch=LEAVES)
        try:
            await self.ask_coordinator(request, top_error)
        except KafkaError:
            return

    # ------------------------------------------------------------ records

    async def _work(self) -> None:
        """Fetches from each leader. One that has failed gets a new session."""
        leaders: dict[int, list[Place]] = {}
        for place in self.assigned:
            try:
                leaders.setdefault(await self.leader(*place), []).append(place)
            except KafkaError:
                await self.pause(PAUSE_S)
        for leader, places in leaders.items():
            try:
                await self._share(leader, frozenset(places))
            except KafkaError:
                self.sessions.pop(leader, None)
                for place in places:
                    self.leaders.pop(place, None)

    async def _share(self, leader: int, places: frozenset[Place]) -> None:
        session = self.sessions.get(leader)
        if session is None or session.places != places:
            session = self.sessions[leader] = Session(places)
        acquired = await self._fetch(leader, session)
        if not acquired:
            return
        share = self.random.choices((ACCEPT, RELEASE, REJECT, 0), (16, 2, 1, 1))[0]
        kind = ACCEPT if self.is_thorough else share
        if kind:
            await self._acknowledge(leader, session, acquired, kind)

    async def _fetch(self, leader: int, session: Session) -> dict[Place, list[tuple[int, int]]]:
        """Returns the ranges of records that were acquired. :raises KafkaError: there is no response"""
        kind, start = ShareFetchRequest.FetchTopic, self.loop.now
        topics = [
            kind(
                topic_id=self.topic_ids[topic],
                partitions=[kind.FetchPartition(partition_index=index, acknowledgement_batches=[])],
            )
            for topic, index in sorted(session.places)
        ]
        request = ShareFetchRequest(
            group_id=self.group.name,
            member_id=self.member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=300,
            min_bytes=1,
            max_records=MOST,
            batch_size=MOST,
            topics=topics if session.epoch == 0 else [],
            forgotten_topics_data=[],
        )
        answer = await self.ask(leader, request)
        check(answer.error_code)
        session.epoch += 1
        found: dict[Place, list[tuple[int, int]]] = {}
        for place, part in self._parts(answer):
            for each in part.acquired_records:
                self.group.acquire(place, each.first_offset, each.last_offset, start)
                found.setdefault(place, []).append((each.first_offset, each.last_offset))
        for _, part in self._parts(answer):
            check(part.error_code)
        return found

    async def _acknowledge(
        self, leader: int, session: Session, acquired: dict[Place, list[tuple[int, int]]], kind: int
    ) -> None:
        """Acknowledges what was acquired. :raises KafkaError: the outcome is not known for all of it"""
        topic = ShareAcknowledgeRequest.AcknowledgeTopic
        part = topic.AcknowledgePartition
        request = ShareAcknowledgeRequest(
            group_id=self.group.name,
            member_id=self.member_id,
            share_session_epoch=session.epoch,
            topics=[
                topic(
                    topic_id=self.topic_ids[place[0]],
                    partitions=[
                        part(
                            partition_index=place[1],
                            acknowledgement_batches=[
                                part.AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=[kind]
                                )
                                for first, last in ranges
                            ],
                        )
                    ],
                )
                for place, ranges in acquired.items()
            ],
        )
        answer = await self.ask(leader, request)
        check(answer.error_code)
        session.epoch += 1
        parts = list(self._parts(answer))
        for place, result in parts:
            if kind == ACCEPT and result.error_code == 0:
                for first, last in acquired.get(place, ()):
                    self.group.accept(place, first, last, self.loop.now)
        for _, result in parts:
            check(result.error_code)

    def _parts(self, answer: Any) -> list[tuple[Place, Any]]:
        """Returns the partitions of a response."""
        names = {topic_id: topic for topic, topic_id in self.topic_ids.items()}
        return [
            ((names[topic.topic_id], part.partition_index), part)
            for topic in answer.responses
            for part in topic.partitions
        ]
