"""One member of a consumer group, as its records describe it (Kafka's ``ConsumerGroupMember``).

Knows nothing of the group. A member is an immutable value, so that a command can compute the next one and write it
before anything changes.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from barnabas.groups.consumer.member_states import STABLE, MemberState
from barnabas.groups.consumer.messages import Heartbeat

Epochs = Mapping[bytes, Mapping[int, int]]
"""The partitions that a member owns by topic id, each with the epoch in which it was assigned (KIP-1251)."""

Target = Mapping[bytes, frozenset[int]]
"""The partitions of a member's target assignment by topic id."""

NOTHING: Final[dict[bytes, dict[int, int]]] = {}
NO_TARGET: Final[dict[bytes, frozenset[int]]] = {}

FIRST_PREVIOUS_EPOCH = -1


class ClassicProtocols(NamedTuple):
    """What is stored of a member that uses the classic protocol, while its group migrates (KIP-848)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata of each supported protocol, in the member's order of preference."""


class Member(NamedTuple):
    """A member: its description, its epochs, and its partitions."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    """Empty or None without a regular expression."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicProtocols | None = None
    """None for a member that uses the consumer protocol."""

    state: MemberState = STABLE
    epoch: int = 0
    previous_epoch: int = FIRST_PREVIOUS_EPOCH
    """The epoch of its last record but one. The response with the current epoch may be lost."""
    assigned: Epochs = NOTHING
    revoking: Epochs = NOTHING
    """The partitions that it has to revoke, and still owns as far as is known."""

    def updated(self, request: Heartbeat) -> Self:
        """Returns the member with the description in the heartbeat."""
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
        """Returns whether the fields of the record ConsumerGroupMemberMetadata are equal."""
        return self[:DESCRIPTION] == other[:DESCRIPTION]

    def is_where(self, other: "Member") -> bool:
        """Returns whether the fields of the record ConsumerGroupCurrentMemberAssignment are equal."""
        return self[DESCRIPTION:] == other[DESCRIPTION:]

    def at(self, epoch: int, state: MemberState, assigned: Epochs, revoking: Epochs) -> Self:
        """Returns the member with this epoch and these partitions."""
        return self._replace(state=state, epoch=epoch, previous_epoch=self.epoch, assigned=assigned, revoking=revoking)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is STABLE and self.epoch == target_epoch

    def has_all(self, owned: Mapping[bytes, Sequence[int]] | None) -> bool:
        """Returns whether all partitions that the member reports are its own; False if it reports nothing."""
        if owned is None:
            return False
        for topic_id, partitions in owned.items():
            assigned = self.assigned.get(topic_id)
            if assigned is None or not assigned.keys() >= set(partitions):
                return False
        return True

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """Returns the epoch in which the partition was assigned to the member; None if it was not."""
        for partitions in (self.assigned.get(topic_id), self.revoking.get(topic_id)):
            if partitions is not None and partition in partitions:
                return partitions[partition]
        return None


DESCRIPTION: Final = Member._fields.index("state")
"""How many of the fields describe the member."""
