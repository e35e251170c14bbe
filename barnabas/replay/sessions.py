"""Sessions of Fetch (KIP-227) and ShareFetch (KIP-932) whose partitions have several leaders in this run.

Knows nothing of connections and routes. A session of the recording is with one node. Where its partitions have several
leaders now, a session of Fetch is replaced by requests without one, and one of ShareFetch, which does not go without,
by a session with each of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from barnabas.diagnosis import Address
from barnabas.wire.messages.fetch import FetchRequest

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


class ShareSessions:
    """The sessions of ShareFetch and ShareAcknowledge: by connection, group and member, the next epoch at each node."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[int, str, str], dict[Address, int]] = {}

    def divide(self, request: Any, connection: int, parts: Mapping[Address, Any]) -> Iterator[tuple[Address, Any]]:
        """Yields what is sent to each node, with the epoch of its session.

        :param parts: by node, the part of the request that is about its partitions
        """
        key = connection, request.group_id or "", request.member_id or ""
        epoch = request.share_session_epoch
        if epoch == FIRST_EPOCH:
            self._epochs[key] = {}
        epochs = self._epochs.setdefault(key, {})
        has_parts = bool(request.topics) or bool(getattr(request, "forgotten_topics_data", None))
        named = parts if has_parts or not epochs else {}
        fetches = hasattr(request, "max_wait_ms")
        nodes = dict.fromkeys([*epochs, *named] if fetches or epoch == LAST_EPOCH else named)
        for node in nodes:
            part = _copy(parts.get(node) or _empty(request))
            part.share_session_epoch = epoch if epoch == LAST_EPOCH else epochs.get(node, FIRST_EPOCH)
            epochs[node] = part.share_session_epoch % MOST_EPOCHS + 1
            yield node, part
        if epoch == LAST_EPOCH:
            del self._epochs[key]


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
