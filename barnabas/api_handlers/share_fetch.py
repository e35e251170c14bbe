"""ShareFetch (API key 78): a member of a share group acknowledges records and acquires others.

Knows nothing of files, nor of the states of records. Follows Apache Kafka's ``KafkaApis.handleShareFetchRequest``
(KIP-932; KIP-1206: record limit; KIP-1222: renewal of locks).
"""

from typing import TYPE_CHECKING

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.by_topic import by_topic
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.fetch_quota import most_bytes, refuses
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_answers import (
    acknowledgements,
    hidden_topics,
    key_of,
    leader_endpoints,
    leader_of,
    message_of,
)
from barnabas.broker.share_fetching import Fetched, FetchLimits, ShareFetching
from barnabas.broker.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSession
from barnabas.errors import (
    InvalidRequest,
    KafkaError,
    ShareSessionLimitReached,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.share.acquiring import Wanted
from barnabas.share.messages import TopicPartition
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

if TYPE_CHECKING:
    from barnabas.api_handlers.access import Access
    from barnabas.broker import Broker

TopicData = ShareFetchResponse.ShareFetchableTopicResponse
PartitionData = TopicData.PartitionData

BATCH_OPTIMIZED, RECORD_LIMIT = range(2)

Acknowledged = dict[TopicPartition, KafkaError | None]


@api(ShareFetchRequest)
def share_fetch(
    request: ShareFetchRequest, context: Context, access: "Access | None" = None
) -> ShareFetchResponse | Later[ShareFetchResponse]:
    """Acknowledges records, then acquires others. Responds as soon as there are records.

    :param access: the rights of the sender; None if there is no authorizer
    """
    try:
        return handle(request, context, access)
    except KafkaError as error:
        return refused(error)


def handle(
    request: ShareFetchRequest, context: Context, access: "Access | None" = None
) -> ShareFetchResponse | Later[ShareFetchResponse]:
    """Opens, continues or closes the session, and acknowledges and fetches.

    :raises KafkaError: the request as a whole is refused
    """
    key = key_of(request.group_id, request.member_id, context)
    if request.is_renew_ack and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise InvalidRequest  # a request that renews locks must not fetch
    try:
        session = enter(request, key, context)
    except ShareSessionLimitReached as error:
        # The response is delayed, since the client would retry at once.
        later: Later[ShareFetchResponse] = Later()
        timer = context.broker.scheduler.call_later(max(request.max_wait_ms, 0) / 1000, later.resolve, refused(error))
        later.on_cancel = timer.cancel
        return later
    if request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
        raise UnknownServerError
    return Answering(request, key, session, context, access).later


def refused(error: KafkaError) -> ShareFetchResponse:
    """Returns the response for an error of the whole request. Apache Kafka has no error text here either."""
    return ShareFetchResponse(error_code=error.code, acquisition_lock_timeout_ms=0, responses=[], node_endpoints=[])


def enter(request: ShareFetchRequest, key: SessionKey, context: Context) -> ShareSession:
    """Returns the session that the request opens, continues or closes, with its partitions updated.

    :raises KafkaError: the session does not exist, or may not be opened
    """
    sessions = context.broker.share_partitions.sessions
    wanted = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    if request.share_session_epoch == FINAL_EPOCH:
        return sessions.get(key)
    if request.share_session_epoch == INITIAL_EPOCH:
        if any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions):
            raise InvalidRequest
        context.session.on_close(context.broker.share_partitions.disconnected)
        return sessions.open(key, wanted, context.session.number)
    session = sessions.continue_(key, request.share_session_epoch)
    for at in wanted:
        session.partitions.setdefault(at, True)
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.partitions.pop((topic.topic_id, index), None)
    return session


class Answering:
    """One request: first acknowledgements, then the fetch."""

    __slots__ = (
        "_acknowledged",
        "_context",
        "_epoch",
        "_fetching",
        "_hidden",
        "_is_cancelled",
        "_key",
        "_request",
        "_session",
        "broker",
        "later",
    )

    def __init__(
        self,
        request: ShareFetchRequest,
        key: SessionKey,
        session: ShareSession,
        context: Context,
        access: "Access | None" = None,
    ) -> None:
        self.broker: Broker = context.broker
        self._request = request
        self._key = key
        self._session = session
        self._context = context
        self._epoch = request.share_session_epoch
        self._acknowledged: Acknowledged = {}
        self._fetching: ShareFetching | None = None
        self._is_cancelled = False
        self._hidden: frozenset[bytes] = frozenset()
        if access is not None:
            topic_ids = {topic_id for topic_id, _ in session.partitions} | {topic.topic_id for topic in request.topics}
            self._hidden = hidden_topics(topic_ids, access, self.broker.image)
        self.later: Later[ShareFetchResponse] = Later()
        self.later.on_cancel = self._stop
        acknowledged_batches, refused = acknowledgements(
            request.topics, self.broker.image, is_renewal=request.is_renew_ack, hidden=self._hidden
        )

        def acknowledged(results: Acknowledged) -> None:
            self._acknowledged = results | refused
            self._fetch()

        self.broker.share_partitions.acknowledge(key, acknowledged_batches, acknowledged)

    def _stop(self) -> None:
        """Stops the fetch: the client has disconnected, and would never acknowledge the records."""
        self._is_cancelled = True
        if self._fetching is not None:
            self._fetching.stop()

    def _fetch(self) -> None:
        """Fetches the session's partitions. A request that closes the session or renews locks fetches nothing."""
        if self._epoch == FINAL_EPOCH:
            self.broker.share_partitions.close_session(self._session, lambda: self._answer({}))
            return
        if self._is_cancelled:
            return
        if self._request.is_renew_ack:
            self._answer({})
            return
        failed, wanted = self._known()
        request = self._request
        max_bytes = most_bytes(self._context, min(request.max_bytes, self.broker.config["fetch.max.bytes"]))
        self._fetching = ShareFetching(
            self.broker,
            self._key.group_id,
            Wanted(
                self._key.member_id, request.max_records, request.batch_size, request.share_acquire_mode == RECORD_LIMIT
            ),
            FetchLimits(request.max_wait_ms, min(request.min_bytes, max_bytes), max_bytes),
            wanted,
            lambda results: self._answer(failed | results),
        )
        self._fetching.start()

    def _known(self) -> tuple[dict[TopicPartition, Fetched], list[TopicPartition]]:
        """Returns the partitions that do not exist or are hidden, and the others, rotated by one with each request."""
        topics, failed = self.broker.image.topics_by_id, {}
        wanted = []
        for at in self._session.partitions:
            topic = topics.get(at[0])
            if topic is None:
                failed[at] = Fetched(error=UnknownTopicId())
            elif at[0] in self._hidden:
                failed[at] = Fetched(error=TopicAuthorizationFailed())
            elif at[1] not in topic.partitions:
                failed[at] = Fetched(error=UnknownTopicOrPartition())
            else:
                wanted.append(at)
        first = self._epoch % len(wanted) if wanted else 0
        return failed, wanted[first:] + wanted[:first]

    # ------------------------------------------------------------ the response

    def _answer(self, fetched: dict[TopicPartition, Fetched]) -> None:
        self._fetching = None  # a reference cycle otherwise: see Later.resolve
        session, acknowledged = self._session, self._acknowledged
        is_incremental = self._epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
        included = dict(fetched)
        if is_incremental:
            included = {
                at: each
                for at, each in fetched.items()
                if each.records or each.error is not None or session.partitions.get(at)
            }
        for at in acknowledged:
            included.setdefault(at, Fetched())
        response = self._response(included)
        if refuses(self._context, response):  # the acquired records stay locked, and the session is unchanged
            response = self._response(dict.fromkeys(self._named() if acknowledged else (), Fetched()))
        elif is_incremental:
            for at, each in fetched.items():
                session.answered(at, has_records=bool(each.records), has_failed=each.error is not None)
        self.later.resolve(response)

    def _named(self) -> list[TopicPartition]:
        """Returns the partitions of the request. If one has acknowledgements, Apache Kafka's response lists all of
        them.
        """
        return [(topic.topic_id, each.partition_index) for topic in self._request.topics for each in topic.partitions]

    def _response(self, included: dict[TopicPartition, Fetched]) -> ShareFetchResponse:
        answers = {at: self._partition(at, each, self._acknowledged.get(at)) for at, each in included.items()}
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self.broker.share_partitions.of_group(self._key.group_id).lock_ms,
            responses=[
                TopicData(topic_id=topic_id, partitions=partitions) for topic_id, partitions in by_topic(answers)
            ],
            node_endpoints=[
                ShareFetchResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in leader_endpoints(answers.values(), self._context)
            ],
        )

    def _partition(self, at: TopicPartition, fetched: Fetched, acknowledge_error: KafkaError | None) -> PartitionData:
        error = fetched.error
        leader_id, leader_epoch = leader_of(at, error, self.broker.image)
        return PartitionData(
            partition_index=at[1],
            error_code=error.code if error is not None else 0,
            # Apache Kafka has no error text here.
            acknowledge_error_code=acknowledge_error.code if acknowledge_error is not None else 0,
            acknowledge_error_message=message_of(acknowledge_error),
            current_leader=PartitionData.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
            records=fetched.records,
            acquired_records=[
                PartitionData.AcquiredRecords(
                    first_offset=each.first_offset, last_offset=each.last_offset, delivery_count=each.delivery_count
                )
                for each in fetched.acquired
            ],
        )
