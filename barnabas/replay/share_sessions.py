"""Sessions of ShareFetch (KIP-932) whose partitions have other leaders in this run.

Knows nothing of connections and routes. A session of the recording is one of a member with one node, on a connection of
its own. In this run the member has one session with each leader, too, but of other partitions: a session of the
recording is divided among several, and several of the recording share one. Before each fetch a session is changed to
the partitions of the recorded one.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from barnabas.diagnosis import Address
from barnabas.replay.sessions import FIRST_EPOCH, LAST_EPOCH
from barnabas.wire.messages.share_fetch import ShareFetchRequest

MOST_EPOCHS: Final = 0x7FFFFFFF

Place = tuple[bytes, int]
"""A partition, by topic id and number."""
Key = tuple[str, str]
"""A member, by group and member id."""


class SessionNow:
    """The session of a member with a node, in this run."""

    def __init__(self) -> None:
        self.users: set[int] = set()  #: the recorded connections whose sessions share it
        self.partitions: dict[Place, None] = {}
        self._epoch = FIRST_EPOCH

    def begin(self) -> None:
        """Starts it anew with the next request."""
        self.partitions, self._epoch = {}, FIRST_EPOCH

    def send(self, request: Any, wanted: Iterable[Place], *, is_last: bool) -> Any:
        """Returns a request with the next epoch, after which the session has the wanted partitions."""
        part = _copy(request)
        part.share_session_epoch = LAST_EPOCH if is_last else self._epoch
        self._epoch = self._epoch % MOST_EPOCHS + 1
        if isinstance(part, ShareFetchRequest):
            there = dict.fromkeys(wanted)
            named = _places(part.topics)
            part.topics = _with_added(part.topics, [each for each in there if each not in {*self.partitions, *named}])
            part.forgotten_topics_data = _forgotten(each for each in self.partitions if each not in there)
            self.partitions = there
        return part


class ShareSessions:
    """The sessions of ShareFetch and ShareAcknowledge."""

    def __init__(self) -> None:
        #: By member and recorded connection: the partitions of the recorded session by their nodes.
        self._recorded: dict[tuple[Key, int], dict[Address, dict[Place, None]]] = {}
        self._now: dict[tuple[Key, Address], SessionNow] = {}

    def partitions(self, request: Any, connection: int, node: Address) -> list[Place]:
        """Returns the partitions that a node fetches for the session of a request."""
        return list(self._recorded.get((_member(request), connection), {}).get(node, ()))

    def divide(self, request: Any, connection: int, parts: Mapping[Address, Any]) -> Iterator[tuple[Address, Any]]:
        """Yields what is sent to each node, with the epoch of its session.

        :param parts: by node, the part of the request that is about its partitions
        """
        member, epoch = _member(request), request.share_session_epoch
        if epoch == FIRST_EPOCH:
            self._leave(member, connection)
        nodes = self._recorded.setdefault((member, connection), {})
        has_parts = bool(request.topics) or bool(getattr(request, "forgotten_topics_data", None))
        named = parts if has_parts or not nodes else {}
        fetches = isinstance(request, ShareFetchRequest)
        for node in dict.fromkeys([*nodes, *named] if fetches or epoch == LAST_EPOCH else named):
            yield node, self._send(member, connection, node, parts.get(node) or _empty(request), epoch)
        if epoch == LAST_EPOCH:
            del self._recorded[member, connection]

    def again(
        self, request: Any, connection: int, node: Address, parts: Mapping[Address, Any]
    ) -> Iterator[tuple[Address, Any]]:
        """Yields what is sent to each node after a node has refused partitions. What a member has acquired ends with
        the leader: acknowledgements go to no other one.

        :param node: the node that has refused
        :param parts: by node, the part of the request that is about the refused partitions
        """
        member = _member(request)
        for leader, part in parts.items():
            if leader != node:
                if not isinstance(request, ShareFetchRequest):
                    continue
                here = self._recorded.get((member, connection), {}).get(node, {})
                for place in _places(part.topics):
                    here.pop(place, None)
                part = _acknowledging_nothing(part)
            yield leader, self._send(member, connection, leader, part, request.share_session_epoch)

    def further(self, request: Any, connection: int, nodes: Iterable[Address]) -> Iterator[tuple[Address, Any]]:
        """Yields a fetch of the recorded session's partitions for each of these nodes that has some, acknowledging
        nothing.
        """
        member, epoch = _member(request), request.share_session_epoch
        here = self._recorded.get((member, connection), {})
        for node in nodes:
            if here.get(node) and epoch != LAST_EPOCH:
                yield node, self._send(member, connection, node, _empty(request), epoch)

    def shares(self, request: Any, connection: int) -> bool:
        """Returns whether another recorded session of the member has come to one of the nodes of this one."""
        member = _member(request)
        return any(
            now.users - {connection} and (connection in now.users or not self._recorded.get((member, connection)))
            for (key, _), now in self._now.items()
            if key == member
        )

    def _send(self, member: Key, connection: int, node: Address, part: Any, epoch: int) -> Any:
        here = self._recorded.setdefault((member, connection), {}).setdefault(node, {})
        now = self._now.setdefault((member, node), SessionNow())
        if epoch == LAST_EPOCH:
            now.users.discard(connection)
            here.clear()
        else:
            if not now.users:
                now.begin()
            now.users.add(connection)
        if isinstance(part, ShareFetchRequest):
            here.update(dict.fromkeys(_places(part.topics)))
            for place in _places(part.forgotten_topics_data):
                here.pop(place, None)
        return now.send(part, here if epoch != LAST_EPOCH else (), is_last=not now.users)

    def _leave(self, member: Key, connection: int) -> None:
        """Ends a recorded session whose client begins it anew."""
        self._recorded.pop((member, connection), None)
        for (key, _), now in self._now.items():
            if key == member:
                now.users.discard(connection)


def _member(request: Any) -> Key:
    return request.group_id or "", request.member_id or ""


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


def _places(topics: Iterable[Any]) -> list[Place]:
    return [
        (bytes(topic.topic_id), each if isinstance(each, int) else each.partition_index)
        for topic in topics
        for each in topic.partitions
    ]


def _with_added(topics: Iterable[Any], places: Iterable[Place]) -> list[Any]:
    """Returns the topics of a request, with partitions that acknowledge nothing."""
    kinds = ShareFetchRequest.FetchTopic
    by_topic = {bytes(topic.topic_id): list(topic.partitions) for topic in topics}
    for topic_id, partition in places:
        added = kinds.FetchPartition(partition_index=partition, acknowledgement_batches=[])
        by_topic.setdefault(topic_id, []).append(added)
    return [kinds(topic_id=topic_id, partitions=partitions) for topic_id, partitions in by_topic.items()]


def _forgotten(places: Iterable[Place]) -> list[Any]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in places:
        by_topic.setdefault(topic_id, []).append(partition)
    return [ShareFetchRequest.ForgottenTopic(topic_id=key, partitions=each) for key, each in by_topic.items()]
