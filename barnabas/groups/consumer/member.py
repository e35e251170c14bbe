"""One member of a consumer group, as its records describe it.

Knows nothing of the group. Members are values: a change makes a new one, so that a command can work out what would be
and write it before anything is so. Follows Apache Kafka's ``ConsumerGroupMember``.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from barnabas.groups.consumer.member_states import STABLE, MemberState
from barnabas.groups.consumer.messages import Heartbeat

Epochs = Mapping[bytes, Mapping[int, int]]
"""By topic id, the partitions that a member has, and in which epoch it was given each (KIP-1251)."""

Target = Mapping[bytes, frozenset[int]]
"""By topic id, the partitions that a member is to have."""

NOTHING: Final[dict[bytes, dict[int, int]]] = {}
NO_TARGET: Final[dict[bytes, frozenset[int]]] = {}

FIRST_PREVIOUS_EPOCH = -1


class ClassicProtocols(NamedTuple):
    """What is known besides of a member that speaks the classic protocol, while its group migrates (KIP-848)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """The protocols that it supports, the one it likes best first: name and metadata."""


class Member(NamedTuple):
    """Who it is, what it wants, and what it has."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    """Empty or None where it subscribes to no pattern."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicProtocols | None = None
    """None for a member that speaks the consumer protocol."""

    state: MemberState = STABLE
    epoch: int = 0
    previous_epoch: int = FIRST_PREVIOUS_EPOCH
    """The epoch in its record before this one: an answer may have been lost."""
    assigned: Epochs = NOTHING
    revoking: Epochs = NOTHING
    """What it has to give up, and has not said yet that it did."""

    def updated(self, request: Heartbeat) -> Self:
        """The member as it says it is."""
        names = self.topic_names
        if request.topic_names is not None and (names := frozenset(request.topic_names)) == self.topic_names:
            names = self.topic_names
        return self._replace(
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=request.client_id,
            client_host=request.client_host,
            topic_names=names,
            topic_regex=self.topic_regex if request.topic_regex is None else request.topic_regex,
            rebalance_timeout_ms=(
                self.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
            ),
            server_assignor=self.server_assignor if request.server_assignor is None else request.server_assignor,
            classic=None,
        )

    def is_described_as(self, other: "Member") -> bool:
        """All that record 5 keeps is the same."""
        return self[:DESCRIPTION] == other[:DESCRIPTION]

    def is_where(self, other: "Member") -> bool:
        """All that record 8 keeps is the same."""
        return self[DESCRIPTION:] == other[DESCRIPTION:]

    def at(self, epoch: int, state: MemberState, assigned: Epochs, revoking: Epochs) -> Self:
        """The member with what it has now, in this epoch."""
        return self._replace(state=state, epoch=epoch, previous_epoch=self.epoch, assigned=assigned, revoking=revoking)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is STABLE and self.epoch == target_epoch

    def has_all(self, owned: Mapping[bytes, Sequence[int]] | None) -> bool:
        """Whether it has been given all that it says it has; False where it does not say."""
        if owned is None:
            return False
        for topic_id, partitions in owned.items():
            assigned = self.assigned.get(topic_id)
            if assigned is None or not assigned.keys() >= set(partitions):
                return False
        return True

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which it was given that partition; None where it has not got it."""
        for partitions in (self.assigned.get(topic_id), self.revoking.get(topic_id)):
            if partitions is not None and partition in partitions:
                return partitions[partition]
        return None


DESCRIPTION: Final = Member._fields.index("state")
"""How many of the fields say who it is and what it wants."""
