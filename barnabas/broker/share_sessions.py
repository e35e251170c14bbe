"""Share sessions (KIP-932): what a member of a share group reads is remembered, so that it need only say what changes.

Knows nothing of logs, records or requests. The rules are those of Apache Kafka's ``ShareSession``,
``ShareSessionCache`` and ``SharePartitionManager``: a session belongs to a member of a group and to the connection on
which it was opened; its epoch goes up by one with each request; none is evicted for another.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound
from barnabas.share.messages import TopicPartition

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1


class SessionKey(NamedTuple):
    """Whose session it is."""

    group_id: str
    member_id: str


class ShareSession:
    """What one member reads, in the order in which it said so."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: Iterable[TopicPartition], connection: int) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        #: Whether the member is still to be told something of a partition, even if it is nothing.
        self.partitions: dict[TopicPartition, bool] = dict.fromkeys(partitions, False)

    def must_include(self, at: TopicPartition, *, has_records: bool, has_failed: bool) -> bool:
        """Whether an answer says anything of the partition; keeps in mind that it did."""
        is_owed = self.partitions.get(at, False)
        if at in self.partitions:
            if has_records:  # it comes last next time
                del self.partitions[at]
            self.partitions[at] = has_failed
        return is_owed or has_records or has_failed


class ShareSessions:
    """All share sessions of a broker."""

    def __init__(self, slots: Callable[[], int]) -> None:
        self._slots = slots
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_connection: dict[int, dict[SessionKey, ShareSession]] = {}
        self._of_group: dict[str, int] = {}
        """How many each group has."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession:
        """:raises ShareSessionNotFound: there is none"""
        session = self._sessions.get(key)
        if session is None:
            raise ShareSessionNotFound
        return session

    def open(self, key: SessionKey, partitions: Iterable[TopicPartition], connection: int) -> ShareSession:
        """A new session, in place of the one that the member had. :raises ShareSessionLimitReached: there are enough"""
        self.remove(key)
        if len(self._sessions) >= self._slots():
            raise ShareSessionLimitReached
        session = self._sessions[key] = ShareSession(key, partitions, connection)
        self._of_group[key.group_id] = self._of_group.get(key.group_id, 0) + 1
        self._of_connection.setdefault(connection, {})[key] = session
        return session

    def continue_(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session that a request goes on with; its epoch is raised for the next one.

        :raises ShareSessionNotFound: it was closed, or never was
        :raises InvalidShareSessionEpoch: a request was lost, or came twice
        """
        session = self.get(key)
        if session.epoch != epoch:
            raise InvalidShareSessionEpoch
        session.epoch = epoch + 1 if epoch < MAX_EPOCH else 1
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        """Close the member's session, if there is one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._of_group[key.group_id] -= 1
            if not self._of_group[key.group_id]:
                del self._of_group[key.group_id]
        return session

    def close(self, session: ShareSession) -> None:
        """The session ends; not another that its member has opened since."""
        if self._sessions.get(session.key) is session:
            self.remove(session.key)

    def detach(self, session: ShareSession) -> None:
        """The end of its connection means nothing to it: a connection may open and close any number of sessions."""
        opened = self._of_connection.get(session.connection, {})
        if opened.get(session.key) is session:
            del opened[session.key]

    def disconnected(self, connection: int) -> list[tuple[ShareSession, bool]]:
        """A connection has ended: the sessions that were opened on it, and which of them end with it.

        A member that has opened another session since, on another connection, keeps that.
        """
        opened = self._of_connection.pop(connection, {})
        return [
            (session, self._sessions.get(key) is session and self.remove(key) is session)
            for key, session in opened.items()
        ]

    def has_members(self, group_id: str) -> bool:
        """Whether any member of the group has a session here."""
        return group_id in self._of_group

    def clear(self) -> None:
        """End them all."""
        self._sessions.clear()
        self._of_connection.clear()
        self._of_group.clear()
