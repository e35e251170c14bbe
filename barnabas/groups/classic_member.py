"""One member of a classic group, and the answers that it waits for.

Knows nothing of the others.
"""

from barnabas.deadlines import Deadline
from barnabas.groups.messages import DescribedMember, JoinReply, Protocols, SyncReply


class ClassicMember:
    """A member of a classic group. Times in milliseconds."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        session: Deadline,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.session = session
        """When it must have been heard of."""
        self.assignment = b""
        self.join_reply: JoinReply | None = None
        """Waits for the end of the rebalance, where it has joined."""
        self.sync_reply: SyncReply | None = None
        """Waits for the leader's assignment, where it has asked for its own."""
        self.is_new = False
        """Its first JoinGroup is not answered yet."""

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_reply is not None

    @property
    def is_excused(self) -> bool:
        """Cannot send heartbeats, since its request is with us; a new one must not wait for ever all the same."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def metadata(self, protocol_name: str) -> bytes:
        """What it said under that protocol; empty where it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def describe(self, protocol_name: str | None) -> DescribedMember:
        """As DescribeGroups shows it; what it said only where ``protocol_name`` says under which name."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol_name is None else self.metadata(protocol_name),
            self.assignment,
        )
