"""Divides a recorded request among the nodes that it belongs to in this run, and puts their responses together.

Knows nothing of connections, nor of the ids of this run: requests are routed with those of the recording.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from barnabas.diagnosis import Address
from barnabas.faults.placing import merged
from barnabas.faults.subjects import GROUP_ARRAYS, TRANSACTIONAL_ARRAYS, TopicName, selected, subjects_of
from barnabas.replay.ahead import Place
from barnabas.replay.routes import GROUP, TRANSACTION, Routes
from barnabas.replay.sessions import FetchSessions
from barnabas.replay.share_sessions import ShareSessions
from barnabas.wire.frames import api_name
from barnabas.wire.message import Request
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest

LED: Final = frozenset({
    "DeleteRecords", "DescribeProducers", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Produce",
    "ShareAcknowledge", "ShareFetch",
})  # fmt: skip
"""APIs that the leader of a partition answers."""

OF_GROUPS: Final = frozenset({
    "AlterShareGroupOffsets", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "DeleteGroups",
    "DeleteShareGroupOffsets", "DescribeGroups", "DescribeShareGroupOffsets", "Heartbeat", "JoinGroup", "LeaveGroup",
    "OffsetCommit", "OffsetDelete", "OffsetFetch", "ShareGroupDescribe", "ShareGroupHeartbeat", "StreamsGroupDescribe",
    "StreamsGroupHeartbeat", "StreamsGroupTopologyDescriptionUpdate", "SyncGroup", "TxnOffsetCommit",
})  # fmt: skip
"""APIs that the coordinator of a group answers."""

OF_TRANSACTIONS: Final = frozenset(
    {"AddOffsetsToTxn", "AddPartitionsToTxn", "DescribeTransactions", "EndTxn", "InitProducerId"}
)
"""APIs that the coordinator of a transactional id answers."""

OF_EVERY_NODE: Final = frozenset({"ListGroups", "ListTransactions"})
"""APIs that list what a node coordinates. Their requests go to all nodes."""


class Part(NamedTuple):
    """What is sent to one node: the request, or a part of it."""

    address: Address
    request: Request
    session: frozenset[Place] = frozenset()  #: partitions that the node answers for without their being named
    is_further: bool = False  #: a ShareFetch that the recording does not have


class Router:
    """Routes requests.

    :param nodes: all nodes of the cluster. If it is one, nothing is divided
    :param topic_name: finds a topic of the recording by its id
    """

    def __init__(self, nodes: Iterable[Address], routes: Routes, topic_name: TopicName) -> None:
        self._nodes = list(nodes)
        self._routes = routes
        self._topic_name = topic_name
        self._fetches = FetchSessions()
        self._shares = ShareSessions()

    @property
    def has_choice(self) -> bool:
        """Whether the cluster has several nodes."""
        return len(self._nodes) > 1

    async def route(self, request: Request, connection: int, default: Address, session_id: int) -> list[Part]:
        """Returns the parts of a request.

        :param connection: the number of the recorded connection, to which fetch sessions belong
        :param default: the node for requests that any node answers, or whose node is unknown
        :param session_id: of the recorded response to a Fetch
        """
        if isinstance(request, FetchRequest):
            return await self._fetch(request, connection, default, session_id)
        if isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            parts = await self._by_leader(request, default) if self.has_choice else {default: request}
            return self._shared(request, connection, self._shares.divide(request, connection, parts))
        if not self.has_choice:
            return [Part(default, request)]
        api = api_name(type(request))
        if api in LED:
            return [Part(*each) for each in (await self._by_leader(request, default)).items()]
        if api in OF_GROUPS or api in OF_TRANSACTIONS:
            return await self._by_coordinator(request, default, GROUP if api in OF_GROUPS else TRANSACTION)
        if api in OF_EVERY_NODE:
            return [Part(node, request) for node in self._nodes]
        return [Part(default, request)]

    async def again(
        self, part: Part, refused: Collection[Place], connection: int, default: Address, session_id: int
    ) -> list[Part]:
        """Returns what is sent again by the routes of now; nothing if that would be in vain.

        :param refused: the partitions that are sent again, if the response has the others; none: the whole part
        """
        request: Any = part.request
        if isinstance(request, FetchRequest):
            if not refused:
                self._fetches.leave(request, connection, session_id)
            request = self._fetches.outside(request, connection, session_id)
        if refused:
            request = selected(request, lambda *place: place in refused, self._topic_name)
        if self.is_led(request):
            request = without_leader_epochs(request)
        if isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            if not refused:
                return [part]
            if not self.has_choice:  # the session remembers the partitions, and its next epoch is the next request's
                return []
            parts = await self._by_leader(request, default)
            return self._shared(request, connection, self._shares.again(request, connection, part.address, parts))
        if not self.has_choice or self.is_of_all(request):
            return [Part(part.address, request)]
        if isinstance(request, FetchRequest):
            return [Part(*each) for each in (await self._by_leader(request, default)).items()]
        return await self.route(request, connection, default, session_id)

    def further(
        self, request: Request, connection: int, parts: Iterable[Part], wanted: Collection[Place]
    ) -> list[Part]:
        """Returns the fetches that acquire more records of some partitions: a ShareFetch came too early for them.

        :param parts: what was sent last
        """
        nodes = [part.address for part in parts if part.session & frozenset(wanted)]
        found = self._shared(request, connection, self._shares.further(request, connection, nodes))
        return [part._replace(is_further=True) for part in found]

    @staticmethod
    def is_led(request: Request) -> bool:
        """Returns whether the leaders of its partitions answer a request, each partition for itself."""
        return api_name(type(request)) in LED

    @staticmethod
    def is_of_all(request: Request) -> bool:
        """Returns whether a request goes to every node."""
        return api_name(type(request)) in OF_EVERY_NODE

    def forget(self) -> None:
        """Forgets all routes, since one of them was wrong."""
        self._routes.forget()

    async def _by_leader(self, request: Any, default: Address) -> dict[Address, Any]:
        """Returns by node the part of a request that is about the partitions which the node leads."""
        places = {
            (topic, partition): await self._routes.leader(topic, partition) or default
            for topic, partition in sorted(subjects_of(request, self._topic_name).topics, key=repr)
            if partition is not None
        }
        nodes = list(dict.fromkeys(places.values()))
        if len(nodes) < 2:
            return {nodes[0] if nodes else default: request}

        def at(node: Address) -> Any:
            return selected(request, lambda *place: places.get(place) == node, self._topic_name)

        return {node: at(node) for node in nodes}

    def _shared(self, request: Any, connection: int, sent: Iterable[tuple[Address, Any]]) -> list[Part]:
        """Returns the parts of a request of a share session."""
        parts = []
        for node, each in sent:
            places = self._shares.partitions(request, connection, node)
            parts.append(Part(node, each, frozenset((self._topic_name(key), index) for key, index in places)))
        return parts

    def shares_session(self, request: Request, connection: int) -> bool:
        """Returns whether a request is of a share session that other recorded connections of its member use as well."""
        is_share = isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest)
        return is_share and self._shares.shares(request, connection)

    async def _by_coordinator(self, request: Any, default: Address, kind: int) -> list[Part]:
        subjects = subjects_of(request, self._topic_name)
        keys = sorted(subjects.groups if kind == GROUP else subjects.transactional_ids)
        places = {key: await self._routes.coordinator(kind, key) or default for key in keys}
        nodes = list(dict.fromkeys(places.values()))
        if len(nodes) < 2:
            return [Part(nodes[0] if nodes else default, request)]
        return [Part(node, with_only(request, {key for key in keys if places[key] == node})) for node in nodes]

    async def _fetch(self, request: FetchRequest, connection: int, default: Address, session_id: int) -> list[Part]:
        """Returns the parts of a Fetch. A session remains one while a single node leads all its partitions; otherwise
        each of its requests becomes Fetches of all its partitions, without a session.
        """
        session = self._fetches.at(request, connection, session_id)
        if not self.has_choice:
            return [Part(default, request)]
        whole = request if session is None else session.whole(request)
        parts = await self._by_leader(whole, default)
        if session is None:
            return [Part(*each) for each in parts.items()]
        if session.stays(request, parts):
            return [Part(next(iter(parts)), request)]
        return [Part(*each) for each in parts.items()]


def without_leader_epochs(structure: Any) -> Any:
    """Returns a copy of a request that leaders of any epoch answer: that of the recording may be fenced now."""
    values = {}
    for field in structure.wire_fields():
        value = getattr(structure, field.name)
        if field.is_array and isinstance(field.kind, type) and value:
            value = [without_leader_epochs(each) for each in value]
        values[field.name] = -1 if field.name == "current_leader_epoch" else value
    return type(structure)(**values)


def with_only(request: Any, keys: set[str]) -> Any:
    """Returns a copy of a request with only those groups or transactional ids."""
    values = {}
    for field in request.wire_fields():
        value = getattr(request, field.name)
        if field.name in (*GROUP_ARRAYS, *TRANSACTIONAL_ARRAYS, "transactions") and field.is_array:
            value = [each for each in value or () if _key(each) in keys]
        values[field.name] = value
    return type(request)(**values)


def _key(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    return str(getattr(entry, "group_id", None) or getattr(entry, "transactional_id", ""))


def put_together(responses: Sequence[Any]) -> Any:
    """Returns one response with the entries of all, and the first error of the whole responses."""
    first, *others = responses
    for other in others:
        merged(first, other)
        if hasattr(first, "error_code") and not first.error_code:
            first.error_code = other.error_code
    return first
