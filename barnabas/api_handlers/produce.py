"""Produce (API key 0): appends a batch of records to each partition.

Knows nothing of files, and of a batch only its header. Rules of Apache Kafka's ``KafkaApis`` and
``ReplicaManager.appendRecords``. The response is sent once the replicas that ``acks`` demands have the batch, which is
at once with one replica.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.produce_in_transaction import (
    ADMIN_CLIENT,
    Before,
    any_transactional,
    everything,
    nothing,
    unverified,
    verified,
)
from barnabas.api_handlers.registry import api
from barnabas.broker import Broker
from barnabas.clock import Timer
from barnabas.cluster.replication.partition import ACKS_ALL, Done, Partition
from barnabas.cluster.topic_names import INTERNAL
from barnabas.errors import (
    CloseConnection,
    CorruptMessage,
    InvalidProducerIdMapping,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopicException,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
)
from barnabas.records.batch import Buffer, RecordBatch
from barnabas.records.validation import NoMessage, NotOneBatch, ProducePolicy, UnknownCodec, validate_produced
from barnabas.transactions.messages import TopicPartition
from barnabas.wire.message import Response
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

Answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


class Unsafe(NamedTuple):
    """The answer for a partition that waits until everything below ``offset`` is as safe as ``acks`` demands."""

    partition: Partition
    offset: int
    answer: Answer


BY_ID = 13
"""The first version that names topics by their ids (KIP-516)."""

BATCHES_SINCE = 3
"""The first version with record batches; earlier ones send message sets (KIP-98)."""

ZSTD_SINCE = 7
"""The first version that may use zstd (KIP-110)."""

NAMES_LEADER = 10
"""The first version whose NOT_LEADER_OR_FOLLOWER names the leader (KIP-951)."""

WITHOUT_LOG_START = (
    UnknownTopicOrPartition, UnknownTopicId, NotLeaderOrFollower, MessageTooLarge, RecordListTooLarge, CorruptMessage,
    KafkaStorageError, InvalidRequiredAcks, InvalidTopicException, NotEnoughReplicas, NotOneBatch,
    UnsupportedCompressionType, TransactionalIdAuthorizationFailed, UnknownCodec,
)  # fmt: skip
"""Errors whose result has no log start offset (``ReplicaManager.appendToLocalLog``)."""


@api(ProduceRequest)
def produce(
    request: ProduceRequest, context: Context, before: Before | None = None
) -> ProduceResponse | Later[ProduceResponse] | None:
    """Appends the batch of each partition. Responds once all of them are as safe as ``acks`` demands.

    A batch that begins a transaction on its partition is verified with the coordinator first.

    :param before: the result of that verification; None if there was none
    """
    broker, version = context.broker, context.api_version
    now_ms = (
        context.time_ms if before is None else broker.clock.time_ms()
    )  # the coordinator's response may have taken time
    failure: KafkaError | None = None
    responses = []
    unsafe: list[Unsafe] = []
    topics: Sequence[ProduceRequest.TopicProduceData] = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = once_each(topics)
    if before is None:
        if request.transactional_id is None:
            if any_transactional(topics):
                before = everything(TransactionalIdAuthorizationFailed())
        else:
            try:
                if (found := unverified(topics, context)) is not None:
                    context.has_errors = True
                    return verified(found, request, context, produce)
            except InvalidProducerIdMapping as error:
                before = everything(error)
    elif before is nothing:
        before = None
    for topic in topics:
        answers = []
        for requested in topic.partition_data:
            try:
                if before is not None and (refusal := before(place_of(topic, requested.index, broker))) is not None:
                    raise refusal
                answer = append(topic, requested, request, context, now_ms, unsafe)
            except KafkaError as error:
                failure = error
                if before is not None and before(place_of(topic, requested.index, broker)) is error:
                    answer = refused_before(requested.index, error)
                else:
                    answer = refused(requested.index, error, broker, topic)
                if version >= NAMES_LEADER and isinstance(error, NotLeaderOrFollower):
                    find_leader(answer, broker, topic)
            answers.append(answer)
        responses.append(
            ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if request.acks == 0:
        if failure is not None:
            raise CloseConnection(f"a produce request with acks=0 failed: {failure}")
        return None
    response = ProduceResponse(responses=responses)
    if failure is not None:
        context.has_errors = True
        if version >= NAMES_LEADER:
            name_leaders(response, broker, context.session.listener)
    if not unsafe:
        return response
    context.has_errors = True
    return when_safe(response, unsafe, request, context)


@error_shape(ProduceRequest)
def failed(request: ProduceRequest, error: KafkaError, version: int) -> Response:
    """Refuses the whole request. With acks=0 there is no response, and the connection is closed."""
    if request.acks == 0:
        raise CloseConnection(f"a produce request with acks=0 failed: {error}")
    return derived(request, error, version, base_offset=-1)


def once_each(topics: Sequence[ProduceRequest.TopicProduceData]) -> Sequence[ProduceRequest.TopicProduceData]:
    """Returns each topic and partition once; of duplicates the last one counts, as in Apache Kafka's map of them."""
    if not has_duplicates(topics):
        return topics
    kept: dict[tuple[str, bytes], dict[int, ProduceRequest.TopicProduceData.PartitionProduceData]] = {}
    for topic in topics:
        if topic.partition_data:
            kept.setdefault((topic.name, topic.topic_id), {}).update(
                {each.index: each for each in topic.partition_data}
            )
    return [
        ProduceRequest.TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in kept.items()
    ]


def has_duplicates(topics: Sequence[ProduceRequest.TopicProduceData]) -> bool:
    """Returns whether a topic, or a partition of a topic, occurs twice, or a topic without partitions at all."""
    if len(topics) > 1 and len({(topic.name, topic.topic_id) for topic in topics}) < len(topics):
        return True
    for topic in topics:
        indexes = {each.index for each in topic.partition_data}
        if not indexes or len(indexes) < len(topic.partition_data):
            return True
    return False


def append(
    topic: ProduceRequest.TopicProduceData,
    requested: ProduceRequest.TopicProduceData.PartitionProduceData,
    request: ProduceRequest,
    context: Context,
    now_ms: int,
    unsafe: list[Unsafe],
) -> Answer:
    """Validates the batch of one partition, and appends it. An answer that has to wait is added to ``unsafe``, too.

    :raises KafkaError: the batch is invalid, or this broker is not the leader
    """
    broker, acks, version = context.broker, request.acks, context.api_version
    if acks not in (-1, 0, 1):
        raise InvalidRequiredAcks
    name = topic_name(topic, context)
    place = (name, requested.index)
    partition = broker.partitions.get(place) or broker.partition(name, requested.index)
    if name in INTERNAL and context.client_id != ADMIN_CLIENT:
        raise InvalidTopicException(f"{name} is for the broker itself to write to")
    log = partition.log
    if not partition.leads or log.is_offline:
        partition.check_leader()
    if requested.records is None:
        raise InvalidRecord("there is no batch of records")
    if version < BATCHES_SINCE:
        batch = converted(requested.records, partition.produce_policy, now_ms)
        if batch is None:
            return Answer(index=requested.index, base_offset=-1)
    else:
        batch = validate_produced(
            requested.records, partition.produce_policy, now_ms, place, allows_zstd=version >= ZSTD_SINCE
        )
    if partition.produce_policy.checks_values:
        check_values(name, batch, broker)
    appended = partition.append(batch, now_ms, acks=acks)
    answer = Answer(
        index=requested.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=log.log_start_offset,
    )
    end = appended.last_offset + 1
    if not partition.is_safe(end, acks):
        unsafe.append(Unsafe(partition, end, answer))
    return answer


def check_values(topic: str, batch: RecordBatch, broker: Broker) -> None:
    """Checks the values if the topic has ``barnabas.value.schema.validation``.

    :raises InvalidRecord: values have no known schema
    """
    if broker.value_check is None:
        raise InvalidRecord(f"{topic} has barnabas.value.schema.validation, and this broker has no schema registry")
    broker.value_check(topic, batch)


def converted(records: Buffer, policy: ProducePolicy, now_ms: int) -> RecordBatch | None:
    """Returns the message set of an old client as a batch; None if it is empty."""
    from barnabas.records.up_conversion import validate_message_set

    return validate_message_set(records, policy, now_ms)


def when_safe(
    response: ProduceResponse, unsafe: list[Unsafe], request: ProduceRequest, context: Context
) -> Later[ProduceResponse]:
    """Returns the response once all batches are as safe as ``acks`` demands. A partition whose batch is lost has an
    error.

    With acks=all, a partition whose followers do not have the batch within the timeout of the request has
    REQUEST_TIMED_OUT (``DelayedProduce``). The batch stays in the log, and may still be replicated.
    """
    later: Later[ProduceResponse] = Later()
    broker, version, listener = context.broker, context.api_version, context.session.listener
    waiting: dict[int, tuple[Partition, Done]] = {}
    timer: Timer | None = None

    def done(number: int, answer: Answer, error: KafkaError | None) -> None:
        partition, _ = waiting.pop(number)
        if error is not None:
            answer.error_code = error.code
            if isinstance(error, KafkaStorageError):  # Apache Kafka flushes before it has an offset
                answer.base_offset = -1
            if version >= NAMES_LEADER and isinstance(error, NotLeaderOrFollower):
                leader_id, leader_epoch = partition.image.leader, partition.leader_epoch
                answer.current_leader = Answer.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
                name_leaders(response, broker, listener)
        if not waiting:
            if timer is not None:
                timer.cancel()
            later.resolve(response)

    def expire() -> None:
        for partition, call in list(waiting.values()):
            partition.stop_waiting(call)
            call(RequestTimedOut())

    def cancel() -> None:
        if timer is not None:
            timer.cancel()
        for partition, call in waiting.values():
            partition.stop_waiting(call)

    for number, (partition, _, answer) in enumerate(unsafe):
        waiting[number] = (partition, partial(done, number, answer))
    for number, (partition, offset, _) in enumerate(unsafe):
        partition.when_safe(offset, request.acks, waiting[number][1])
    if waiting and request.acks == ACKS_ALL and any(each.followers is not None for each, _ in waiting.values()):
        timer = broker.scheduler.call_later(max(request.timeout_ms, 0) / 1000, expire)
        later.on_cancel = cancel
    return later


def topic_name(topic: ProduceRequest.TopicProduceData, context: Context) -> str:
    if context.api_version < BY_ID:
        return topic.name
    name = context.broker.topic_name(topic.topic_id)
    if name is None:
        raise UnknownTopicId
    return name


def place_of(topic: ProduceRequest.TopicProduceData, index: int, broker: Broker) -> TopicPartition:
    return TopicPartition(topic.name or broker.topic_name(topic.topic_id) or "", index)


def refused_before(index: int, error: KafkaError) -> Answer:
    """Returns the answer for a partition that was refused before its log was read."""
    return Answer(index=index, error_code=error.code, base_offset=-1, error_message=str(error) if error.args else None)


def refused(index: int, error: KafkaError, broker: Broker, topic: ProduceRequest.TopicProduceData) -> Answer:
    answer = Answer(index=index, error_code=error.code, base_offset=-1)
    if not isinstance(error, WITHOUT_LOG_START):
        name = topic.name or broker.topic_name(topic.topic_id)
        partition = broker.partitions.get((name or "", index))
        answer.log_start_offset = partition.log.log_start_offset if partition is not None else -1
    if error.record_errors or isinstance(error, NoMessage):
        answer.error_message = str(error)
        answer.record_errors = [
            Answer.BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
            for batch_index, message in error.record_errors
        ]
    return answer


def find_leader(answer: Answer, broker: Broker, topic: ProduceRequest.TopicProduceData) -> None:
    """Adds the leader of the partition to its answer, if this node knows it."""
    name = topic.name or broker.topic_name(topic.topic_id)
    leader_id, leader_epoch = broker.leader_of(name or "", answer.index)
    answer.current_leader = Answer.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)


def name_leaders(response: ProduceResponse, broker: Broker, listener: str) -> None:
    """Adds the addresses of the leaders that the response names."""
    leaders = {answer.current_leader.leader_id for topic in response.responses for answer in topic.partition_responses}
    response.node_endpoints = [
        ProduceResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in broker.nodes.of(listener).values()
        if node.id in leaders
    ]
