"""Members of one large group, each on its own connection: the broker's cost of their rebalance.

Knows nothing of how a broker decides. Members are sockets and a selector in one thread, so they cost little; their CPU
time is counted apart from the broker's.
"""

import contextlib
import selectors
import socket
import struct
import time
import uuid
from collections.abc import Iterator, Sequence

from barnabas.errors import NONE, IllegalGeneration, MemberIdRequired, RebalanceInProgress
from barnabas.wire.message import Request, Response
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from benchmarks import load

GROUP, TOPIC = "large", "many"
HEARTBEAT_S = 0.5
"""The heartbeat interval of members, shorter than the clients' default, so that they learn of each other soon."""
PATIENCE_S = 120
SESSION_MS = 45_000
SUBSCRIPTION = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode() + b"\xff\xff\xff\xff"
VERSIONS: dict[type[Request], int] = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    ConsumerGroupHeartbeatRequest: 1,
}


def shares(members: Sequence[str], partitions: int) -> Iterator[tuple[str, list[int]]]:
    """Returns the partitions of each member, equally many, in order."""
    for index, member in enumerate(members):
        yield member, list(range(index, partitions, len(members)))


def consumer_assignment(partitions: Sequence[int]) -> bytes:
    """Encodes a ``ConsumerProtocolAssignment``, version 0."""
    topic = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode()
    return topic + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions) + b"\xff\xff\xff\xff"


class Member:
    """One member: sends one request at a time; the response decides which is next."""

    def __init__(self, connection: socket.socket, partitions: int, group: str) -> None:
        self.connection = connection
        self.partitions = partitions
        self.group = group
        self.in_flight: Request | None = None
        self.heartbeat_at = 0.0
        self.has_settled_at = -1
        """The generation or epoch in which the member has its assignment and has acknowledged it."""
        self.owns = 0
        self._received = bytearray()

    def ask(self, request: Request) -> None:
        version = VERSIONS[type(request)]
        self.connection.sendall(load.framed(request.api_key, version, request.encode(version=version)))
        self.in_flight = request

    def receive(self) -> None:
        """Reads the available bytes; the last byte of a response triggers the next request."""
        piece = self.connection.recv(1 << 20)
        if not piece:
            raise ConnectionError("the server closed the connection")
        self._received += piece
        if len(self._received) < 4 or len(self._received) - 4 < struct.unpack_from(">i", self._received)[0]:
            return
        assert self.in_flight is not None
        data, self._received = bytes(self._received), bytearray()
        response = self.in_flight.response
        version = VERSIONS[type(self.in_flight)]
        answer = response.decode(data, version=version, at=8 + response.header_version(version))
        self.in_flight, self.heartbeat_at = None, time.perf_counter() + HEARTBEAT_S
        self.answered(answer)

    def start(self) -> None:
        raise NotImplementedError

    def answered(self, answer: Response) -> None:
        raise NotImplementedError

    def beat(self) -> None:
        raise NotImplementedError


class ClassicMember(Member):
    """JoinGroup, SyncGroup, Heartbeat; the leader assigns each member the same number of partitions."""

    def __init__(self, connection: socket.socket, partitions: int, group: str) -> None:
        super().__init__(connection, partitions, group)
        self.id, self.generation = "", -1

    def start(self) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
        self.ask(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                member_id=self.id,
                protocol_type="consumer",
                protocols=[protocol],
            )
        )

    def beat(self) -> None:
        self.ask(HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.id))

    def answered(self, answer: Response) -> None:
        assert isinstance(answer, JoinGroupResponse | SyncGroupResponse | HeartbeatResponse)
        if answer.error_code != NONE:
            again = (MemberIdRequired.code, RebalanceInProgress.code, IllegalGeneration.code)
            assert answer.error_code in again, answer
            if isinstance(answer, JoinGroupResponse):
                self.id = answer.member_id
            self.has_settled_at = -1
            self.start()
        elif isinstance(answer, JoinGroupResponse):
            self.generation = answer.generation_id
            members = [each.member_id for each in answer.members]
            kind = SyncGroupRequest.SyncGroupRequestAssignment
            self.ask(
                SyncGroupRequest(
                    group_id=self.group,
                    generation_id=self.generation,
                    member_id=self.id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[
                        kind(member_id=member, assignment=consumer_assignment(share))
                        for member, share in shares(members, self.partitions)
                    ],
                )
            )
        elif isinstance(answer, SyncGroupResponse):
            self.has_settled_at = self.generation
            assigned = ConsumerProtocolAssignment.decode_prefixed(answer.assignment).assigned_partitions
            self.owns = sum(len(each.partitions) for each in assigned)


class ConsumerMember(Member):
    """ConsumerGroupHeartbeat; the member owns its assignment at once."""

    def __init__(self, connection: socket.socket, partitions: int, group: str) -> None:
        super().__init__(connection, partitions, group)
        self.id = str(uuid.uuid4())
        self.epoch = 0
        self.owned: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = []

    def start(self) -> None:
        self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.id,
                member_epoch=self.epoch,
                rebalance_timeout_ms=SESSION_MS,
                subscribed_topic_names=[TOPIC],
                topic_partitions=self.owned,
            )
        )

    def beat(self) -> None:
        self.ask(ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.id, member_epoch=self.epoch))

    def answered(self, answer: Response) -> None:
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        assert answer.error_code == NONE, answer
        self.epoch = self.has_settled_at = answer.member_epoch
        if answer.assignment is None:
            return
        kind = ConsumerGroupHeartbeatRequest.TopicPartitions
        assigned = answer.assignment.topic_partitions
        self.owned = [kind(topic_id=each.topic_id, partitions=each.partitions) for each in assigned]
        self.owns = sum(len(each.partitions) for each in assigned)
        self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=self.id, member_epoch=self.epoch, topic_partitions=self.owned
            )
        )


def come_together(
    port: int, kinds: Sequence[type[Member]], count: int, partitions: int, group: str = GROUP
) -> tuple[float, float]:
    """Members of each kind in turn join at once, until each reads its share of the topic in one generation.

    Returns the elapsed seconds, and the CPU seconds of this process.
    """
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        members = [
            kinds[number % len(kinds)](stack.enter_context(load.connected(port)), partitions, group)
            for number in range(count)
        ]
        for member in members:
            selector.register(member.connection, selectors.EVENT_READ, member)
        began, cpu_began = time.perf_counter(), time.process_time()
        for member in members:
            member.start()
        while not have_settled(members, partitions):
            for key, _ in selector.select(HEARTBEAT_S / 10):
                key.data.receive()
            now = time.perf_counter()
            assert now - began < PATIENCE_S, "the group does not settle"
            for member in members:
                if member.in_flight is None and member.heartbeat_at <= now:
                    member.beat()
        return time.perf_counter() - began, time.process_time() - cpu_began


def have_settled(members: Sequence[Member], partitions: int) -> bool:
    """Returns whether all members are in one generation and own all partitions."""
    generations = {member.has_settled_at for member in members}
    return len(generations) == 1 and -1 not in generations and sum(member.owns for member in members) == partitions
