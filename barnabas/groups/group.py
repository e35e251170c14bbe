"""What the coordinator has to know of a group, of whatever kind it is.

Knows nothing of how any kind works. Groups that were made by the classic protocol are ``classic_group.py``'s; those of
the newer ones live by the ledger: their state is what their records say.
"""

from typing import Protocol

from barnabas.groups.ledger import Pair
from barnabas.groups.messages import OffsetCommit


class Group(Protocol):
    """Kafka's ``Group``."""

    group_id: str
    is_written: bool
    """There is a record of it: until then nobody sees it."""

    @property
    def type(self) -> str:
        """ "classic", "consumer", "share" or "streams"."""

    @property
    def protocol_type(self) -> str | None:
        """As ListGroups says it: that of the classic protocol, or the same as the type."""

    @property
    def state_name(self) -> str:
        """As ListGroups says it: "Stable", "Empty" ..."""

    @property
    def is_empty(self) -> bool:
        """Has no members."""

    @property
    def is_consumer_group(self) -> bool:
        """Its members are consumers, which can be asked what they subscribe to."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether somebody reads that topic, as far as can be told."""

    def validate_offset_commit(self, commit: OffsetCommit) -> None:
        """:raises KafkaError: who says so may not commit"""

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """:raises KafkaError: who says so may not ask how far the group is"""

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """When an offset that was committed then began to be of no use; None while it may be of use."""

    def tombstones(self) -> list[Pair]:
        """The records that take it away, but for its offsets."""

    def bury(self) -> None:
        """It is no longer here, or no more: no deadline of it strikes, and whoever waits in it is told."""
