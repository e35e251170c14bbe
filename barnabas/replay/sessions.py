"""Sessions of Fetch (KIP-227) and ShareFetch (KIP-932) whose partitions have several leaders in this run.

Knows nothing of connections and routes. A session of the recording is with one node. Where its partitions have several
leaders now, a session of Fetch is replaced by requests without one, and one of ShareFetch, which does not go without,
by a session with each of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from barnabas.diagnosis import Address
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest

NO_SESSION, LAST_EPOCH, FIRST_EPOCH = 0, -1, 0
MOST_EPOCHS: Final = 0x7FFFFFFF

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


class ShareSession:
    """A session of a member: what each node has of it."""

    def __init__(self) -> None:
        self.epochs: dict[Address, int] = {}  #: the next epoch by node
        self._partitions: dict[Address, dict[tuple[bytes, int], None]] = {}
        self._moved: dict[Address, list[tuple[bytes, int]]] = {}  # to be forgotten by the node that leads them no more

    def partitions(self, node: Address) -> list[tuple[bytes, int]]:
        """Returns the partitions that a node fetches for the session, by topic id and number."""
        return list(self._partitions.get(node, ()))

    def move(self, node: Address, request: Any) -> None:
        """Stores that a node leads the partitions of a request no more."""
        self._moved.setdefault(node, []).extend(_places(request.topics))

    def send(self, node: Address, request: Any, epoch: int) -> Any:
        """Returns a request with the epoch of the node's session, and with the partitions that have moved."""
        part = _copy(request)
        part.share_session_epoch = epoch if epoch == LAST_EPOCH else self.epochs.get(node, FIRST_EPOCH)
        self.epochs[node] = part.share_session_epoch % MOST_EPOCHS + 1
        if isinstance(part, ShareFetchRequest):
            here = self._partitions.setdefault(node, {})
            here.update(dict.fromkeys(_places(part.topics)))
            moved = [place for place in self._moved.pop(node, ()) if place not in _places(part.topics)]
            part.forgotten_topics_data = [*part.forgotten_topics_data, *_forgotten(moved)]
            for place in _places(part.forgotten_topics_data):
                here.pop(place, None)
        return part


class ShareSessions:
    """The sessions of ShareFetch and ShareAcknowledge, by connection, group and member."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, str, str], ShareSession] = {}

    def at(self, request: Any, connection: int) -> ShareSession:
        """Returns the session of a request."""
        return self._sessions.setdefault((connection, request.group_id or "", request.member_id or ""), ShareSession())

    def divide(self, request: Any, connection: int, parts: Mapping[Address, Any]) -> Iterator[tuple[Address, Any]]:
        """Yields what is sent to each node, with the epoch of its session.

        :param parts: by node, the part of the request that is about its partitions
        """
        key = connection, request.group_id or "", request.member_id or ""
        epoch = request.share_session_epoch
        if epoch == FIRST_EPOCH:
            self._sessions.pop(key, None)
        session = self.at(request, connection)
        has_parts = bool(request.topics) or bool(getattr(request, "forgotten_topics_data", None))
        named = parts if has_parts or not session.epochs else {}
        fetches = isinstance(request, ShareFetchRequest)
        for node in dict.fromkeys([*session.epochs, *named] if fetches or epoch == LAST_EPOCH else named):
            yield node, session.send(node, parts.get(node) or _empty(request), epoch)
        if epoch == LAST_EPOCH:
            del self._sessions[key]

    def again(
        self, request: Any, connection: int, node: Address, parts: Mapping[Address, Any]
    ) -> Iterator[tuple[Address, Any]]:
        """Yields what is sent to each node after a node has refused partitions. What a member has acquired ends with
        the leader: acknowledgements go to no other one.

        :param node: the node that has refused
        :param parts: by node, the part of the request that is about the refused partitions
        """
        session = self.at(request, connection)
        for leader, part in parts.items():
            if leader != node:
                if not isinstance(request, ShareFetchRequest):
                    continue
                session.move(node, part)
            yield leader, session.send(leader, _acknowledging_nothing(part) if leader != node else part, FIRST_EPOCH)


def _key(topic: Any) -> TopicKey:
    return topic.topic, bytes(topic.topic_id)


def _copy(request: Any) -> Any:
    return type(request)(**{field.name: getattr(request, field.name) for field in request.wire_fields()})


def _empty(request: Any) -> Any:
    empty = _copy(request)
    empty.topics = []
    if hasattr(empty, "forgotten_topics_data"):
        empty.forgotten_topics_data = []
    return empty


def _acknowledging_nothing(request: Any) -> Any:
    without = _copy(request)
    without.topics = [
        ShareFetchRequest.FetchTopic(
            topic_id=topic.topic_id,
            partitions=[
                ShareFetchRequest.FetchTopic.FetchPartition(
                    partition_index=each.partition_index, acknowledgement_batches=[]
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return without


def _places(topics: Iterable[Any]) -> list[tuple[bytes, int]]:
    return [
        (bytes(topic.topic_id), each if isinstance(each, int) else each.partition_index)
        for topic in topics
        for each in topic.partitions
    ]


def _forgotten(places: Iterable[tuple[bytes, int]]) -> list[Any]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in places:
        by_topic.setdefault(topic_id, []).append(partition)
    return [ShareFetchRequest.ForgottenTopic(topic_id=key, partitions=each) for key, each in by_topic.items()]
