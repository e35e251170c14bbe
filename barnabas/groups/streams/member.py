"""A member of a streams group, as its records say.

Knows nothing of the group; it never changes: what follows is another one.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.groups.streams.member_states import MemberState
from barnabas.groups.streams.tasks import NONE_ASSIGNED, TasksWithEpochs


class Endpoint(NamedTuple):
    """Where the application of a member can be asked about its state."""

    host: str
    port: int


class Member(NamedTuple):
    """Kafka's ``StreamsGroupMember``; to begin with as ``Builder.withDefaults`` makes it."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """The members of one process share its disk: a task has one copy there, whatever its role."""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = {}
    assigned: TasksWithEpochs = NONE_ASSIGNED
    """What it runs, or has been told to run."""
    revoking: TasksWithEpochs = NONE_ASSIGNED
    """What it has been told to give up, and has not said that it did."""

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch
