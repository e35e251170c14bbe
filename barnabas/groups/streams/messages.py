"""The commands of streams groups and their results.

Knows nothing of the wire, except that a topology has the form of its record.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from barnabas.errors import KafkaError
from barnabas.groups.streams.configuring import ConfiguredTopology, Problem
from barnabas.groups.streams.member import Endpoint, Member
from barnabas.groups.streams.tasks import Target, Tasks
from barnabas.groups.streams.topology import Topology
from barnabas.wire.messages.group_records import StreamsGroupTopologyValue

JOINING, LEAVING, LEAVING_STATIC = 0, -1, -2
"""The epochs of members that join, leave, or leave temporarily as static members."""

TaskIds = Sequence[tuple[str, Sequence[int]]]


class Heartbeat(NamedTuple):
    """A StreamsGroupHeartbeat. A field is None if it has not changed since the last one."""

    group_id: str
    member_id: str
    member_epoch: int = JOINING
    endpoint_epoch: int = 0
    """The epoch of the endpoints that the member knows."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: StreamsGroupTopologyValue | None = None
    active: TaskIds | None = None
    standby: TaskIds | None = None
    warmup: TaskIds | None = None
    """The tasks that the member owns, by role."""
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] | None = None
    unsupported_offsets: str | None = None
    """The field with offsets of tasks, in a version in which Apache Kafka refuses it."""
    shutdown_application: bool = False
    client_id: str = ""
    client_host: str = ""
    creatable: Callable[[Iterable[str]], frozenset[str]] | None = None
    """Returns the internal topics that the member may create; None if it may create all."""
    """In Kafka's format: "/127.0.0.1"."""


class EndpointPartitions(NamedTuple):
    """The partitions that an endpoint serves, as topic and partitions."""

    endpoint: Endpoint
    active: TaskIds
    standby: TaskIds


class HeartbeatResult(NamedTuple):
    """The response to a :class:`Heartbeat`. With an error the other fields are ignored."""

    error: KafkaError | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    status: Sequence[Problem] = ()
    tasks: tuple[Tasks, Tasks, Tasks] | None = None
    """Active, standby and warm-up tasks; None if they have not changed."""
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointPartitions] | None = None
    wants_description: bool = False
    """No member has described the topology (KIP-1331)."""

    @classmethod
    def refused(cls, error: KafkaError) -> Self:
        return cls(error)


HeartbeatReply = Callable[[HeartbeatResult], object]


class DescribedGroup(NamedTuple):
    """A group in the response of StreamsGroupDescribe."""

    state: str
    epoch: int
    assignment_epoch: int
    topology: Topology | None
    configured: ConfiguredTopology | None
    """The topology with its partition counts, if it is ready."""
    members: Sequence[tuple[Member, Target | None]]
    """Each member with its target."""
    description: object = None
    """A member's description of the topology, in the form in which the caller has stored it."""
