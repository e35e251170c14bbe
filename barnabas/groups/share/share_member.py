"""One member of a share group, as its records describe it (Kafka's ``ShareGroupMember``).

Knows nothing of the group.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.groups.share.messages import Partitions


class ShareMember(NamedTuple):
    """A member. It has no state: it may read its partitions at once."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    """Sorted, without duplicates."""
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Partitions = {}
