"""A member of a streams group, as its records describe it.

Knows nothing of the group. A member is an immutable value.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.groups.streams.member_states import MemberState
from barnabas.groups.streams.tasks import NONE_ASSIGNED, TasksWithEpochs


class Endpoint(NamedTuple):
    """Where an application can be queried for its state."""

    host: str
    port: int


class Member(NamedTuple):
    """Kafka's ``StreamsGroupMember``. The defaults are those of ``Builder.withDefaults``."""

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
    """Members of one process share its disk: it has at most one copy of a task."""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = {}
    assigned: TasksWithEpochs = NONE_ASSIGNED
    """The tasks that it runs, or has to run."""
    revoking: TasksWithEpochs = NONE_ASSIGNED
    """The tasks that it has to revoke, and has not confirmed as revoked."""

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch
