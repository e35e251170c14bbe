"""One member of a classic group, with its session and its pending responses.

Knows nothing of other members.
"""

from barnabas.deadlines import Deadline
from barnabas.groups.messages import DescribedMember, JoinReply, Protocols, SyncReply


class ClassicMember:
    """A member of a classic group. Times are in milliseconds."""

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
        """The deadline of the next heartbeat."""
        self.assignment = b""
        self.join_reply: JoinReply | None = None
        """The callback of a JoinGroup that waits for the end of the rebalance."""
        self.sync_reply: SyncReply | None = None
        """The callback of a SyncGroup that waits for the leader's assignment."""
        self.is_new = False
        """The response to its first JoinGroup is pending."""

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_reply is not None

    @property
    def awaits_response(self) -> bool:
        """Whether it cannot send heartbeats because it waits for a response. A new member has a deadline all the
        same."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def metadata(self, protocol_name: str) -> bytes:
        """Returns the metadata for that protocol; empty if the member does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def describe(self, protocol_name: str | None) -> DescribedMember:
        """Returns the member for DescribeGroups, with its metadata if a protocol is given."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol_name is None else self.metadata(protocol_name),
            self.assignment,
        )
