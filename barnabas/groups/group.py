"""The interface of a group of any type (Kafka's ``Group``).

Knows nothing of how a type works. Classic groups are in ``classic_group.py``. Groups of the newer types change only by
their records, which the ledger writes and applies.
"""

from collections.abc import Mapping
from typing import Protocol

from barnabas.groups.ledger import Pair
from barnabas.groups.messages import OffsetCommit


class Group(Protocol):
    """A group of any type."""

    group_id: str
    is_written: bool
    """The group has a record. Before that it is not visible."""

    @property
    def type(self) -> str:
        """The type: "classic", "consumer", "share" or "streams"."""

    @property
    def protocol_type(self) -> str | None:
        """The protocol type for ListGroups: that of a classic group, otherwise the same as the type."""

    @property
    def state_name(self) -> str:
        """The state for ListGroups, for example "Stable" or "Empty"."""

    @property
    def members(self) -> Mapping[str, object]:
        """The members by their ids."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @property
    def is_consumer_group(self) -> bool:
        """Whether its members are consumers, whose subscription is known."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Returns whether a member subscribes to the topic; True if that is unknown."""

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """Checks that the member may commit.

        :raises KafkaError: it may not
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Checks that the member may fetch the group's offsets.

        :raises KafkaError: it may not
        """

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """Returns the time from which the retention of an offset with this commit timestamp counts; None if it does not
        expire.
        """

    def tombstones(self) -> list[Pair]:
        """Returns the tombstones of all the group's records but its offsets."""

    def close(self) -> None:
        """Cancels all deadlines of a group that is removed."""
