"""What is said to streams groups, and what they say back.

Knows nothing of the wire, but that a topology has the form that its record has.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

from barnabas.errors import NONE, KafkaError, UnknownServerError
from barnabas.groups.streams.configuring import ConfiguredTopology, Problem
from barnabas.groups.streams.member import Endpoint, Member
from barnabas.groups.streams.tasks import Target, Tasks
from barnabas.groups.streams.topology import Topology
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue

JOINING, LEAVING, LEAVING_STATIC = 0, -1, -2
"""Epochs with which members say what they are up to; the last is a static member's."""

TaskIds = Sequence[tuple[str, Sequence[int]]]


class Heartbeat(NamedTuple):
    """StreamsGroupHeartbeat: be a member, stay one, or leave. What is None is as it was."""

    group_id: str
    member_id: str
    member_epoch: int = JOINING
    endpoint_epoch: int = 0
    """Which state of the endpoints it knows."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: StreamsGroupTopologyValue | None = None
    active: TaskIds | None = None
    standby: TaskIds | None = None
    warmup: TaskIds | None = None
    """What it owns."""
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] | None = None
    tells_offsets: bool = False
    """It says how far its tasks are, which Apache Kafka 4.3 does not take."""
    shutdown_application: bool = False
    client_id: str = ""
    client_host: str = ""
    """As Kafka writes it: "/127.0.0.1"."""


class EndpointPartitions(NamedTuple):
    """Which partitions are read where, for interactive queries: topic and partitions each."""

    endpoint: Endpoint
    active: TaskIds
    standby: TaskIds


class HeartbeatResult(NamedTuple):
    """The answer to a :class:`Heartbeat`; with an error the rest is of no use."""

    error_code: int = NONE
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    status: Sequence[Problem] = ()
    tasks: tuple[Tasks, Tasks, Tasks] | None = None
    """Active, standby, warm-up; None where they are as they were."""
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointPartitions] | None = None
    wants_description: bool = False
    """Nobody has said yet what the topology looks like (KIP-1331)."""

    @classmethod
    def refused(cls, error: KafkaError) -> Self:
        has_reason = bool(error.args) and not isinstance(error, UnknownServerError)
        return cls(error.code, str(error) if has_reason else None)


HeartbeatReply = Callable[[HeartbeatResult], object]


class DescribedGroup(NamedTuple):
    """A group as StreamsGroupDescribe shows it."""

    state: str
    epoch: int
    assignment_epoch: int
    topology: Topology | None
    configured: ConfiguredTopology | None
    """Where it can run: then the numbers of partitions are those that were decided."""
    members: Sequence[tuple[Member, Target | None]]
    """Each with its target."""
    description: object = None
    """What a member has said of the topology, for people to read; whoever put it there knows what it is."""
