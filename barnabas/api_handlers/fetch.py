"""Fetch (API key 1): returns whole batches of partitions, at once or when there are ``min.bytes``.

Knows nothing of files: a partition returns bytes, which are sent as they are. Rules of Apache Kafka's ``KafkaApis``,
``ReplicaManager.readFromLog`` and ``DelayedFetch``; sessions are KIP-227, epochs KIP-320 and KIP-595.
"""

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.fetch_quota import most_bytes, refuses
from barnabas.api_handlers.leader_throttle import count, is_held_back
from barnabas.api_handlers.registry import api
from barnabas.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    Key,
    RequestedPartition,
    SessionPartition,
)
from barnabas.cluster.replication.delayed_fetch import DelayedFetch
from barnabas.cluster.replication.partition import READ_COMMITTED, READ_LOG_END, READ_UNCOMMITTED, Partition
from barnabas.config.validators import RACK_AWARE_SELECTOR
from barnabas.errors import (
    FencedLeaderEpoch,
    InconsistentTopicId,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.log.files import NotCached
from barnabas.log.partition_log import PartitionLog
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.api_handlers.access import Access
    from barnabas.api_handlers.message_sets import MessageSets

TopicData = FetchResponse.FetchableTopicResponse
PartitionData = TopicData.PartitionData
PartitionAnswer = tuple[Key, SessionPartition, PartitionData]

MINIMUM_ONE_SINCE = 3
"""The first version that returns the first batch whole, whatever the limits (KIP-74)."""

BATCHES_SINCE = 4
"""The first version with record batches; earlier ones read message sets (KIP-98)."""

STORAGE_ERROR_SINCE = 6
"""The first version that knows KAFKA_STORAGE_ERROR (KIP-112)."""

BY_ID = 13
"""The first version that names topics by their ids (KIP-516)."""

ANY_REPLICA = 11
"""The first version in which a consumer may read from a follower (KIP-392)."""

REPLICA_STATE = 15
"""The first version with the replica's epoch beside its id (KIP-903)."""

NAMES_LEADER = 16
"""The first version whose NOT_LEADER_OR_FOLLOWER names the leader (KIP-951)."""

SHARDS = 8
SESSIONS_A_SHARD = (2**31 - 1) // SHARDS
"""Apache Kafka divides its cache of sessions by their ids, and fails for ids outside of the divisions."""

MISSING = (UnknownTopicOrPartition, UnknownTopicId)
"""Errors that Apache Kafka finds before it reads any log. The response has these partitions last, in another shape."""


@api(FetchRequest)
def fetch(
    request: FetchRequest, context: Context, access: "Access | None" = None
) -> FetchResponse | Later[FetchResponse]:
    """Reads each partition of the request, or of its session, within the limits.

    :param access: the rights of the sender; None if there is no authorizer
    """
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise UnknownServerError(f"there is no isolation level {request.isolation_level}")
    if not -SESSIONS_A_SHARD < request.session_id < SESSIONS_A_SHARD * SHARDS:
        raise UnknownServerError(f"no session can have the id {request.session_id}")
    if context.meter is not None:
        context.meter.is_exempt = follower_of(request, context.api_version)[0] >= 0
    try:
        reading = Reading(request, context)
    except KafkaError as error:
        return FetchResponse(error_code=error.code, session_id=0, responses=[])
    if access is not None:
        reading.hide(access)
    answers, size, is_complete = reading.read()
    response: FetchResponse | Later[FetchResponse]
    if reading.not_cached:
        response = Loading(reading, request.max_wait_ms).later
    elif is_complete or size >= reading.min_bytes or request.max_wait_ms <= 0:
        response = reading.answer(answers)
    else:
        response = Waiting(reading, reading.min_bytes - size, request.max_wait_ms, Later()).later
    reading.take_in()
    return response


def follower_of(request: FetchRequest, version: int) -> tuple[int, int]:
    """Returns id and broker epoch of the fetching follower, which client quotas do not count; -1 for a consumer."""
    if version < REPLICA_STATE:
        return request.replica_id, -1
    return request.replica_state.replica_id, request.replica_state.replica_epoch


def message_sets(version: int, partitions: int) -> "MessageSets":
    """Returns the converter to message sets; imported when the first old client comes."""
    from barnabas.api_handlers.message_sets import MessageSets

    return MessageSets(version, partitions)


@error_shape(FetchRequest)
def refused(request: FetchRequest, error: KafkaError, version: int) -> FetchResponse:
    """Before version 13 each partition has the error, too."""
    topics = [] if version >= BY_ID else request.topics
    return FetchResponse(
        error_code=error.code,
        session_id=request.session_id,
        responses=[
            TopicData(topic=topic.topic, partitions=[failed(each.partition, error) for each in topic.partitions])
            for topic in topics
        ],
    )


def failed(partition_index: int, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition_index, error_code=error.code, high_watermark=-1, aborted_transactions=[], records=b""
    )


class Reading:
    """A fetch request in progress: its partitions, limits and session."""

    __slots__ = (
        "_cached_only",
        "_context",
        "_follower_epoch",
        "_follower_id",
        "_has_waited",
        "_is_follower",
        "_message_sets",
        "_progress",
        "_rack",
        "_version",
        "broker",
        "is_incremental",
        "isolation_level",
        "max_bytes",
        "min_bytes",
        "not_cached",
        "readable",
        "refused",
        "session",
        "wanted",
    )  # fmt: skip

    def __init__(self, request: FetchRequest, context: Context) -> None:
        self.broker = context.broker
        self._context = context
        self._version = context.api_version
        self._has_waited = False
        self._cached_only = True
        self.not_cached: list[NotCached] = []
        self._progress: list[
            tuple[Partition, RequestedPartition, int]
        ] = []  # of a follower, not recorded by the leader yet
        self._follower_id, self._follower_epoch = follower_of(request, self._version)
        self._is_follower = self._follower_id >= 0
        self._rack = ""  # preferred read replicas
        if self._is_follower:
            self.isolation_level, self.max_bytes = READ_LOG_END, request.max_bytes
        else:
            self.isolation_level = request.isolation_level
            self.max_bytes = most_bytes(context, min(request.max_bytes, self.broker.config["fetch.max.bytes"]))
            if request.rack_id and self.broker.config["replica.selector.class"] == RACK_AWARE_SELECTOR:
                self._rack = request.rack_id
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.session: FetchSession | None = None
        self.is_incremental = False
        self.wanted: dict[Key, SessionPartition]
        self._enter(request)
        self.readable = self.wanted  #: without the partitions that the sender may not read
        self.refused: list[PartitionAnswer] = []
        self._message_sets = message_sets(self._version, len(self.wanted)) if self._version < BATCHES_SINCE else None

    # ------------------------------------------------------------ sessions

    def _enter(self, request: FetchRequest) -> None:
        """Finds or creates the session, and updates its partitions by the request."""
        sessions, by_id = self.broker.fetch_sessions, self._version >= BY_ID
        now_ms = self._context.time_ms
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id:
                sessions.remove(request.session_id)
            self.wanted = {}
            self._update(self.wanted, request)
            if request.session_epoch == INITIAL_EPOCH:
                self.session = sessions.create(self.wanted, uses_topic_ids=by_id, now_ms=now_ms)
            return
        session = sessions.continue_(request.session_id, request.session_epoch, uses_topic_ids=by_id, now_ms=now_ms)
        self.wanted = session.partitions
        self._update(self.wanted, request)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                self.wanted.pop((topic.topic_id if by_id else topic.topic, index), None)
        if self.wanted:
            self.session, self.is_incremental = session, True
        else:
            sessions.remove(session.id)

    def _update(self, wanted: dict[Key, SessionPartition], request: FetchRequest) -> None:
        by_id, topic_name = self._version >= BY_ID, self.broker.topic_name
        for topic in request.topics:
            name = (topic_name(topic.topic_id) or "") if by_id else topic.topic
            first = topic.topic_id if by_id else name
            for requested in topic.partitions:
                key = (first, requested.partition)
                want = wanted.get(key)
                if want is None:
                    wanted[key] = SessionPartition(name, topic.topic_id, requested)
                else:
                    want.requested = requested

    def hide(self, access: "Access") -> None:
        """Refuses the partitions that the sender may not read, a follower all of them without CLUSTER_ACTION."""
        for want in self.wanted.values():
            if not want.topic:  # the session began before this node knew the topic id
                want.topic = self.broker.topic_name(want.topic_id) or ""
        if self._is_follower:
            allowed = access.on_cluster(Operation.CLUSTER_ACTION)
            names = frozenset(want.topic for want in self.wanted.values()) if allowed else frozenset()
        else:
            named = (want.topic for want in self.wanted.values() if want.topic)
            names = access.allowed(Operation.READ, ResourceType.TOPIC, named) | {""}  # an unknown id hides nothing
        if all(want.topic in names for want in self.wanted.values()):
            return
        self.readable = {key: want for key, want in self.wanted.items() if want.topic in names}
        for key, want in self.wanted.items():
            if want.topic not in names:
                want.high_watermark = -1
                answer = failed(want.requested.partition, TopicAuthorizationFailed())
                self.refused.append((key, want, answer))

    @property
    def hosted(self) -> Mapping[Any, Partition]:
        """The hosted partitions, by the keys of this request."""
        hosting = self.broker.hosting
        return hosting.partitions_by_id if self._version >= BY_ID else hosting.partitions

    # ------------------------------------------------------------ reading

    def read_loaded(self) -> tuple[list[PartitionAnswer], int, bool]:
        """Does what :meth:`read` does, after :attr:`not_cached` was loaded. This read may block on the disk."""
        self._cached_only = False
        return self.read()

    def read_again(self) -> list[PartitionAnswer]:
        """Reads again after the wait. All partitions were found when it began."""
        self._has_waited, self._cached_only = True, False
        return self.read()[0]

    def read(self) -> tuple[list[PartitionAnswer], int, bool]:
        """Returns the answers, their number of bytes, and whether waiting is pointless.

        If :attr:`not_cached` is set, some records are not in the page cache, and the answers must not be used.
        """
        answers: list[PartitionAnswer] = []
        missing: list[PartitionAnswer] = []
        left, size, is_complete = self.max_bytes, 0, not self.readable
        minimum_one, message_sets = self._version >= MINIMUM_ONE_SINCE, self._message_sets
        hosted, isolation_level, is_incremental = self.hosted, self.isolation_level, self.is_incremental
        is_follower, cached_only = self._is_follower, self._cached_only
        for key, want in self.readable.items():
            requested = want.requested
            try:
                partition = hosted.get(key) or self._find(want)
                log, offset, epoch = partition.log, requested.fetch_offset, requested.current_leader_epoch
                if is_follower or epoch >= 0 or not partition.leads or log.is_offline:
                    self._check_leader(partition, epoch)
                if message_sets is not None:
                    message_sets.check(log)
                high_watermark, stable = log.high_watermark, log.last_stable_offset
                up_to = partition.readable_up_to(isolation_level) if isolation_level else high_watermark
                if (self._rack or requested.last_fetched_epoch >= 0) and (other := self._other(partition, requested)):
                    answers.append((key, want, other))
                    is_complete = True
                    continue
                limit = requested.partition_max_bytes if requested.partition_max_bytes < left else left
                if limit < 0:
                    check_limit(limit, log, offset, up_to)
                if offset == up_to:
                    records = b""
                elif message_sets is None:
                    records = partition.read(
                        offset, limit, up_to=up_to, minimum_one=minimum_one, cached_only=cached_only
                    )
                else:
                    records = message_sets.read(partition, offset, limit, up_to=up_to, minimum_one=minimum_one)
                aborted = aborted_in(log, offset, records) if isolation_level == READ_COMMITTED else None
                if is_follower:
                    records = self._for_follower(partition, requested, up_to, records)
            except NotCached as part:
                self.not_cached.append(part)
                left, minimum_one = max(left - part.size, 0), False
                continue
            except KafkaError as error:
                want.high_watermark = -1
                among = missing if isinstance(error, MISSING) and not self._has_waited else answers
                among.append((key, want, self._failed(want, error)))
                is_complete = True
                left = max(left, 0)
                continue
            if records:
                size += len(records)
                left, minimum_one = max(left - len(records), 0), False
            elif (
                is_incremental
                and want.high_watermark == high_watermark
                and want.log_start_offset == log.log_start_offset
            ):
                continue
            data = PartitionData(
                partition_index=requested.partition,
                high_watermark=high_watermark,
                last_stable_offset=stable,
                log_start_offset=log.log_start_offset,
                aborted_transactions=aborted,
                records=records,
            )
            answers.append((key, want, data))
        return answers + self._last(missing) if missing or self.refused else answers, size, is_complete

    def _last(self, missing: list[PartitionAnswer]) -> list[PartitionAnswer]:
        """Returns the answers that come last. For requests with topic names, Apache Kafka checks rights and existence
        in one pass.
        """
        if self._version >= BY_ID or not missing or not self.refused:
            return missing + self.refused
        places = {key: place for place, key in enumerate(self.wanted)}
        return sorted(missing + self.refused, key=lambda answer: places[answer[0]])

    def _check_leader(self, partition: Partition, epoch: int) -> None:
        epoch = max(epoch, -1)  # any negative epoch means none
        if self._is_follower:
            partition.check_leader(epoch)
            partition.replica(self._follower_id, has_epoch=epoch >= 0)
            if partition.followers is not None:
                partition.followers.check_epoch(self._follower_id, self._follower_epoch)
        elif self._version < ANY_REPLICA:
            partition.check_leader(epoch)
        else:
            partition.check_epoch(epoch)

    def _other(self, partition: Partition, requested: RequestedPartition) -> PartitionData | None:
        """Returns the answer that replaces a read: a preferred read replica, or a diverging epoch. None if the log is
        to be read.
        """
        if self._rack and partition.leads:
            from barnabas.api_handlers.preferred_replica import preferred

            nodes = self.broker.nodes.of(self._context.session.listener)
            if (elsewhere := preferred(partition, requested.fetch_offset, self._rack, nodes)) is not None:
                return elsewhere
        return diverged(partition, requested) if requested.last_fetched_epoch >= 0 else None

    def _for_follower(
        self, partition: Partition, requested: RequestedPartition, log_end_offset: int, records: bytes
    ) -> bytes:
        """Notes the fetch offset of the follower. Returns the records; none for a throttled follower that is not in
        sync.
        """
        if not self._has_waited:
            self._progress.append((partition, requested, log_end_offset))
        return b"" if is_held_back(self.broker, partition, self._follower_id) else records

    def take_in(self) -> None:
        """Passes the fetch offsets of the follower to the leaders (``Partition.fetchRecords``).

        This may complete Produce requests, and the producers' next requests append at once. So it is called after all
        reads, and waiting fetches see these appends.
        """
        progress, self._progress = self._progress, []
        for partition, requested, log_end_offset in progress:
            followers = partition.followers
            if followers is None:
                continue  # it has another leader since
            with contextlib.suppress(KafkaError):
                followers.fetched(
                    followers.replica(self._follower_id, has_epoch=True),
                    requested.fetch_offset,
                    requested.log_start_offset,
                    log_end_offset,
                    self._follower_epoch,
                )

    def _find(self, want: SessionPartition) -> Partition:
        """Looks up a partition that is not hosted under its key: its topic may have been created or deleted since."""
        if want.topic_id == ZERO_UUID:
            if self._version >= BY_ID:
                raise UnknownTopicId
            return self.broker.partition(want.topic, want.requested.partition)
        name = self.broker.topic_name(want.topic_id)
        if name is None:
            if not want.topic:
                raise UnknownTopicId
            # A session keeps the name, which may belong to another topic now.
            raise InconsistentTopicId if want.topic in self.broker.image.topics_by_name else UnknownTopicOrPartition
        want.topic = name
        return self.broker.partition(name, want.requested.partition)

    def _failed(self, want: SessionPartition, error: KafkaError) -> PartitionData:
        if isinstance(error, KafkaStorageError) and self._version < STORAGE_ERROR_SINCE:
            error = NotLeaderOrFollower()
        data = failed(want.requested.partition, error)
        if self._has_waited or not isinstance(error, MISSING):
            data.aborted_transactions = None
        if self._version >= NAMES_LEADER and isinstance(error, NotLeaderOrFollower | FencedLeaderEpoch):
            leader_id, leader_epoch = self.broker.leader_of(want.topic or "", want.requested.partition)
            data.current_leader = PartitionData.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        return data

    # ------------------------------------------------------------ answering

    def answer(self, answers: list[PartitionAnswer]) -> FetchResponse:
        """Returns the response, and updates the session by it. A client over its quota gets an empty response."""
        response = self._response(answers)
        if self._is_follower:
            for _, want, data in answers:
                place = (want.topic, data.partition_index)
                count(self.broker, self.broker.partitions.get(place), len(data.records or b""))
        elif refuses(self._context, response):
            return self._empty()
        session = self.session
        if session is not None:
            for key, want, data in answers:
                if data.error_code == 0:
                    want.high_watermark, want.log_start_offset = data.high_watermark, data.log_start_offset
                if data.records and self.is_incremental:
                    session.served(key)
        return response

    def _empty(self) -> FetchResponse:
        """Returns the response to a throttled client, for which no session begins (``FetchContext``)."""
        session = self.session
        if session is not None and not self.is_incremental:
            self.broker.fetch_sessions.remove(session.id)
        return FetchResponse(session_id=session.id if session is not None and self.is_incremental else 0, responses=[])

    def _response(self, answers: list[PartitionAnswer]) -> FetchResponse:
        session = self.session
        responses: list[TopicData] = []
        first: str | bytes | None = None
        for key, _, data in answers:
            if key[0] != first:
                first = key[0]
                responses.append(
                    TopicData(topic_id=first, partitions=[])
                    if isinstance(first, bytes)
                    else TopicData(topic=first, partitions=[])
                )
            responses[-1].partitions.append(data)
        response = FetchResponse(session_id=session.id if session is not None else 0, responses=responses)
        if self._version >= NAMES_LEADER and not self._is_follower:
            leaders = {data.current_leader.leader_id for _, _, data in answers if data.error_code} - {-1}
            if leaders:
                response.node_endpoints = [
                    FetchResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                    for node in self.broker.nodes.of(self._context.session.listener).values()
                    if node.id in leaders
                ]
        return response

    def go_on(self) -> None:
        """Resumes the request time of the client's quota, after the wait."""
        if self._context.meter is not None:
            self._context.meter.go_on()

    def wait(self) -> None:
        """Pauses the request time of the client's quota during the wait."""
        if self._context.meter is not None:
            self._context.meter.stop()


def check_limit(limit: int, log: PartitionLog, offset: int, up_to: int) -> None:
    """Checks that no partition is to be read with a negative limit.

    :raises UnknownServerError: one is
    """
    if log.log_start_offset <= offset < up_to:
        raise UnknownServerError(f"{limit} bytes cannot be read")


def aborted_in(log: PartitionLog, offset: int, records: bytes) -> list[PartitionData.AbortedTransaction]:
    """Returns the aborted transactions in ``records``, which a read_committed consumer skips.

    :raises CorruptMessage: the index of aborted transactions cannot be read
    """
    return [
        PartitionData.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in log.aborted_transactions(offset, records)
    ]


def diverged(partition: Partition, requested: RequestedPartition) -> PartitionData | None:
    """Returns the diverging epoch if the reader's last epoch ended earlier in this log (KIP-595); None if it did not.

    :raises OffsetOutOfRange: the epoch is unknown, or the fetch offset is before the log start offset
    """
    log = partition.log
    epoch, end_offset = log.end_offset_for_epoch(requested.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or requested.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange
    if epoch >= requested.last_fetched_epoch and end_offset >= requested.fetch_offset:
        return None
    return PartitionData(
        partition_index=requested.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=PartitionData.EpochEndOffset(epoch=epoch, end_offset=end_offset),
        aborted_transactions=None,
        records=b"",
    )


class Loading:
    """A fetch of records that are not in the page cache. A thread loads them, so that the loop does not wait."""

    __slots__ = ("_max_wait_ms", "_reading", "later")

    def __init__(self, reading: Reading, max_wait_ms: int) -> None:
        self._reading: Reading | None = reading
        self._max_wait_ms = max_wait_ms
        self.later: Later[FetchResponse] = Later()
        self.later.on_cancel = self._cancel
        reading.broker.log_manager.load(reading.not_cached, self._loaded)

    def _cancel(self) -> None:
        self._reading = None

    def _loaded(self) -> None:
        reading = self._reading
        if reading is None:
            return
        reading.go_on()
        answers, size, is_complete = reading.read_loaded()
        if is_complete or size >= reading.min_bytes or self._max_wait_ms <= 0:
            self.later.resolve(reading.answer(answers))
        else:
            Waiting(reading, reading.min_bytes - size, self._max_wait_ms, self.later)
            reading.wait()
        reading.take_in()


class Waiting(DelayedFetch):
    """A fetch that found less than ``min.bytes``."""

    __slots__ = ("_missing", "_reading", "later")

    def __init__(self, reading: Reading, missing: int, max_wait_ms: int, later: Later[FetchResponse]) -> None:
        hosted = reading.hosted
        partitions = [partition for key in reading.readable if (partition := hosted.get(key)) is not None]
        super().__init__(reading.broker.scheduler, partitions, reading.isolation_level, max_wait_ms)
        self._reading = reading
        self._missing = missing
        self.later = later
        self.later.on_cancel = self.stop

    def advanced(self, size: int) -> None:
        self._missing = self._missing - size if size else 0
        if self._missing <= 0:
            self.look_soon()

    def try_complete(self) -> None:
        self.stop()
        self._reading.go_on()
        self.later.resolve(self._reading.answer(self._reading.read_again()))

    expire = try_complete
