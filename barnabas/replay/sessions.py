"""Sessions of Fetch (KIP-227) whose partitions have several leaders in this run.

Knows nothing of connections and routes. A session of the recording is with one node. Where its partitions have several
leaders now, it is replaced by requests without a session.
"""

from collections.abc import Mapping
from typing import Any

from barnabas.diagnosis import Address
from barnabas.wire.messages.fetch import FetchRequest

NO_SESSION, LAST_EPOCH, FIRST_EPOCH = 0, -1, 0

TopicKey = tuple[str, bytes]


class FetchSession:
    """The partitions of a session, and the node that has it as well."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[TopicKey, int], Any] = {}
        self._node: Address | None = None  #: None: no node has it

    def update(self, request: FetchRequest) -> None:
        """Adds, changes and removes partitions as a request does."""
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                self._partitions.pop((_key(forgotten), partition), None)
        for topic in request.topics:
            for each in topic.partitions:
                self._partitions[_key(topic), each.partition] = each

    def whole(self, request: FetchRequest) -> FetchRequest:
        """Returns a request for all partitions of the session, without a session."""
        by_topic: dict[TopicKey, list[Any]] = {}
        for (topic, _), partition in self._partitions.items():
            by_topic.setdefault(topic, []).append(partition)
        topics = [
            FetchRequest.FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)
            for (name, topic_id), partitions in by_topic.items()
        ]
        values = {field.name: getattr(request, field.name) for field in request.wire_fields()}
        values |= {"session_id": NO_SESSION, "session_epoch": LAST_EPOCH, "forgotten_topics_data": [], "topics": topics}
        return FetchRequest(**values)

    def leave(self) -> None:
        """Has the partitions fetched without the session from now on."""
        self._node = None

    def stays(self, request: FetchRequest, nodes: Mapping[Address, object]) -> bool:
        """Returns whether the request can be sent as a session's, since the node that has it leads all partitions.

        :param nodes: the leaders of all partitions
        """
        node = next(iter(nodes)) if len(nodes) == 1 else None
        if request.session_epoch == FIRST_EPOCH:
            self._node = node
        elif self._node != node:
            self._node = None
        return self._node is not None


class FetchSessions:
    """The sessions by the recorded connections and session ids."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, int], FetchSession] = {}

    def at(self, request: FetchRequest, connection: int, session_id: int) -> FetchSession | None:
        """Returns the session of a request, with its partitions after the request; None if there is none.

        :param session_id: of the recorded response
        """
        if request.session_epoch == LAST_EPOCH:
            self._sessions.pop((connection, request.session_id), None)
            return None
        if request.session_epoch == FIRST_EPOCH:
            if session_id == NO_SESSION:
                return None
            session = self._sessions[connection, session_id] = FetchSession()
        else:
            found = self._sessions.get((connection, request.session_id))
            if found is None:
                return None
            session = found
        session.update(request)
        return session

    def outside(self, request: FetchRequest, connection: int, session_id: int) -> FetchRequest:
        """Returns a request for the partitions of a request and of its session, without a session. The session has seen
        the request, and its epoch is spent.

        :param session_id: of the recorded response
        """
        session = self._sessions.get((connection, session_id or request.session_id))
        if request.session_epoch == LAST_EPOCH or session is None:
            session = FetchSession()
            session.update(request)
        return session.whole(request)

    def leave(self, request: FetchRequest, connection: int, session_id: int) -> None:
        """Has the partitions of a request's session fetched without it from now on, since its node has it no more."""
        session = self._sessions.get((connection, session_id or request.session_id))
        if session is not None:
            session.leave()


def _key(topic: Any) -> TopicKey:
    return topic.topic, bytes(topic.topic_id)
