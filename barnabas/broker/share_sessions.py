"""Share sessions (KIP-932): the broker remembers which partitions a member fetches, and a request lists only the
changes.

Knows nothing of logs, records or requests. The rules are those of Apache Kafka's ``ShareSession``,
``ShareSessionCache`` and ``SharePartitionManager``: a session belongs to a member of a group and to the connection on
which it was opened; its epoch goes up by one with each request; no session is evicted.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound
from barnabas.integers import MAX_INT
from barnabas.share.messages import TopicPartition

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = MAX_INT


class SessionKey(NamedTuple):
    """The member that a session belongs to."""

    group_id: str
    member_id: str


class ShareSession:
    """The session of one member. Its partitions are in the order in which they are fetched."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: Iterable[TopicPartition], connection: int) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        #: The partitions, and whether the next response must include them even without records.
        self.partitions: dict[TopicPartition, bool] = dict.fromkeys(partitions, False)

    def answered(self, at: TopicPartition, *, has_records: bool, has_failed: bool) -> None:
        """Updates the session after a response. One that has failed is in the next response, too."""
        if at in self.partitions:
            if has_records:  # it becomes the last
                del self.partitions[at]
            self.partitions[at] = has_failed


class ShareSessions:
    """All share sessions of a broker."""

    def __init__(self, slots: Callable[[], int]) -> None:
        self._slots = slots
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_connection: dict[int, dict[SessionKey, ShareSession]] = {}
        self._of_group: dict[str, int] = {}
        """The number of sessions of each group."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession:
        """Returns the member's session. :raises ShareSessionNotFound: there is none"""
        session = self._sessions.get(key)
        if session is None:
            raise ShareSessionNotFound
        return session

    def open(self, key: SessionKey, partitions: Iterable[TopicPartition], connection: int) -> ShareSession:
        """Opens a session, in place of the member's previous one. :raises ShareSessionLimitReached: no slot is free"""
        self.remove(key)
        if len(self._sessions) >= self._slots():
            raise ShareSessionLimitReached
        session = self._sessions[key] = ShareSession(key, partitions, connection)
        self._of_group[key.group_id] = self._of_group.get(key.group_id, 0) + 1
        self._of_connection.setdefault(connection, {})[key] = session
        return session

    def continue_(self, key: SessionKey, epoch: int) -> ShareSession:
        """Returns the session of this request, and raises its epoch for the next one.

        :raises ShareSessionNotFound: it was closed, or never existed
        :raises InvalidShareSessionEpoch: a request was lost or duplicated
        """
        session = self.get(key)
        if session.epoch != epoch:
            raise InvalidShareSessionEpoch
        session.epoch = epoch + 1 if epoch < MAX_EPOCH else 1
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        """Removes the member's session, if there is one, and returns it."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._of_group[key.group_id] -= 1
            if not self._of_group[key.group_id]:
                del self._of_group[key.group_id]
        return session

    def close(self, session: ShareSession) -> None:
        """Closes the session, but not one that its member has opened since."""
        if self._sessions.get(session.key) is session:
            self.remove(session.key)

    def detach(self, session: ShareSession) -> None:
        """Forgets the connection of a closed session: a connection may open and close any number of sessions."""
        opened = self._of_connection.get(session.connection, {})
        if opened.get(session.key) is session:
            del opened[session.key]

    def disconnected(self, connection: int) -> list[tuple[ShareSession, bool]]:
        """Returns the sessions that were opened on a closed connection, and whether each of them ends with it.

        A session that its member has since opened on another connection does not end.
        """
        opened = self._of_connection.pop(connection, {})
        return [
            (session, self._sessions.get(key) is session and self.remove(key) is session)
            for key, session in opened.items()
        ]

    def has_members(self, group_id: str) -> bool:
        """Returns whether any member of the group has a session on this broker."""
        return group_id in self._of_group

    def clear(self) -> None:
        """Removes all sessions."""
        self._sessions.clear()
        self._of_connection.clear()
        self._of_group.clear()
