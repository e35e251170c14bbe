"""Metadata (API key 3): brokers, and topics with the leaders of their partitions.

Knows nothing of how topics are created, only that a missing topic may be created. Rules and order of the response are
those of Apache Kafka's ``KafkaApis.handleTopicMetadataRequest`` and ``KRaftMetadataCache``.
"""

import logging
from collections.abc import Iterable, Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.mutation_quotas import mutation_quota
from barnabas.api_handlers.outcome import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from barnabas.api_handlers.registry import api
from barnabas.broker import Broker
from barnabas.broker.nodes import Node
from barnabas.cluster.controller.commands.topics import CreatedTopic, NewTopic
from barnabas.cluster.controller.replicas import has_online_directory
from barnabas.cluster.image.image import PartitionImage, TopicImage
from barnabas.cluster.internal_topics import new_internal_topic
from barnabas.cluster.topic_names import CLUSTER_METADATA, INTERNAL, is_legal_topic_name
from barnabas.errors import (
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    LeaderNotAvailable,
    ListenerNotFound,
    ReplicaNotAvailable,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.types import ZERO_UUID

logger = logging.getLogger(__name__)

Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition

BY_ID = 12
"""The first version that requests topics by id; 10 and 11 have the field, and refuse it (KAFKA-12701)."""

KNOWS_LISTENER_NOT_FOUND = 6
"""The first version with its own error for a leader that does not have the client's listener."""


@api(MetadataRequest)
def metadata(request: MetadataRequest, context: Context) -> MetadataResponse | Later[MetadataResponse]:
    """Describes the requested topics. Creates missing ones if that is allowed; the next request describes these.

    As in Apache Kafka, a topic that is being created has UNKNOWN_TOPIC_OR_PARTITION, and the client retries.
    """
    check(request, context.api_version)
    broker = context.broker
    topics, missing = requested_topics(request, context)
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    response = MetadataResponse(
        brokers=broker.nodes.described(context.session.listener, described),
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if missing and request.allow_auto_topic_creation and broker.config["auto.create.topics.enable"]:
        return after_creating(missing, context, response)
    return response


def described(node: Node) -> MetadataResponse.MetadataResponseBroker:
    return MetadataResponse.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)


def after_creating(
    names: Iterable[str], context: Context, response: MetadataResponse
) -> MetadataResponse | Later[MetadataResponse]:
    """Creates the topics with legal names. Responds once they are committed or refused.

    As Apache Kafka, it responds at once if another node creates them.
    """
    broker = context.broker
    wanted = [
        new_internal_topic(name, broker.config) if name in INTERNAL else NewTopic(name)
        for name in names
        if is_legal_topic_name(name) and name != CLUSTER_METADATA
    ]
    if not wanted:
        return response
    later: Later[MetadataResponse] = Later()

    def created(results: Sequence[CreatedTopic] | None, error: KafkaError | None) -> None:
        for topic in results or [CreatedTopic(each.name, error) for each in wanted]:
            if topic.error is not None:
                logger.warning("Cannot auto-create the topic %s: %s", topic.name, topic.error)
        later.resolve(response)

    if context.is_elsewhere:
        from barnabas.api_handlers.forwarding import sender_of

        broker.create_topics(wanted, created, sender=sender_of(context))
        return response
    # Kafka's broker sends the controller a CreateTopics of the newest version, whose quota is strict.
    broker.create_topics(wanted, created, quota=mutation_quota(context, throttles=False))
    return later if later.response is None else later.response


def check(request: MetadataRequest, version: int) -> None:
    """Checks that each topic has a name or an id.

    :raises InvalidRequest: a topic has an id, or no name, in a version before :data:`BY_ID`
    :raises UnknownServerError: a topic has neither a name nor an id
    """
    topics = request.topics or ()
    if version < BY_ID:
        if any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics):
            raise InvalidRequest
    elif all(topic.topic_id == ZERO_UUID for topic in topics) and any(topic.name is None for topic in topics):
        raise UnknownServerError


@error_shape(MetadataRequest)
def refused(request: MetadataRequest, error: KafkaError, version: int) -> MetadataResponse:
    """Returns the error for each topic, and from version 13 on for the whole response. A missing name is empty."""
    topics = [
        Topic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id, partitions=[])
        for topic in request.topics or ()
    ]
    return MetadataResponse(brokers=[], topics=topics, error_code=error.code)


def requested_topics(request: MetadataRequest, context: Context) -> tuple[list[Topic], list[str]]:
    """Returns the topics of the response, and the names that do not exist. If there are ids, names are ignored."""
    version = context.api_version
    image = context.broker.image
    describe = Description(context.broker, context.session.listener, version)
    if request.topics is None or (version == 0 and not request.topics):
        return [*map(describe.topic, image.topics_by_name.values())], []
    ids = dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id != ZERO_UUID)
    if ids:
        unknown = [
            Topic(error_code=UnknownTopicId.code, name=None, topic_id=topic_id, partitions=[])
            for topic_id in ids
            if topic_id not in image.topics_by_id
        ]
        found = (image.topics_by_id[topic_id] for topic_id in ids if topic_id in image.topics_by_id)
        return [*unknown, *map(describe.topic, found)], []
    names = dict.fromkeys(topic.name for topic in request.topics if topic.name is not None)
    missing = [name for name in names if name not in image.topics_by_name]
    topics = [describe.topic(image.topics_by_name[name]) for name in names if name in image.topics_by_name]
    return [*topics, *map(missing_topic, missing)], missing


def missing_topic(name: str) -> Topic:
    error = UnknownTopicOrPartition if is_legal_topic_name(name) else InvalidTopicException
    return Topic(error_code=error.code, name=name, is_internal=name in INTERNAL, partitions=[])


class Description:
    """Describes topics to the clients of one listener."""

    __slots__ = ("_alive", "_image", "_version")

    def __init__(self, broker: Broker, listener: str, version: int) -> None:
        self._image = broker.image
        self._alive = broker.nodes.of(listener)
        self._version = version

    def topic(self, topic: TopicImage) -> Topic:
        return Topic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL,
            partitions=[self.partition(index, partition) for index, partition in topic.partitions.items()],
        )

    def partition(self, index: int, partition: PartitionImage) -> Partition:
        alive = self._alive
        described = Partition(
            partition_index=index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            offline_replicas=[
                replica
                for replica in partition.replicas
                if replica not in alive or not has_online_directory(replica, partition, self._image)
            ],
        )
        if partition.leader not in alive:
            described.leader_id = -1
            described.error_code = self.leader_error(partition.leader).code
        if self._version == 0:
            self._leave_out_unavailable(described)
        return described

    def _leave_out_unavailable(self, described: Partition) -> None:
        """Clients of version 0 are not given replicas without an address (``errorUnavailableEndpoints``)."""
        named = len(described.replica_nodes) + len(described.isr_nodes)
        described.replica_nodes = [replica for replica in described.replica_nodes if replica in self._alive]
        described.isr_nodes = [replica for replica in described.isr_nodes if replica in self._alive]
        if described.error_code == 0 and len(described.replica_nodes) + len(described.isr_nodes) < named:
            described.error_code = ReplicaNotAvailable.code

    def leader_error(self, leader: int) -> type[KafkaError]:
        broker = self._image.brokers.get(leader)
        if broker is not None and not broker.fenced and self._version >= KNOWS_LISTENER_NOT_FOUND:
            return ListenerNotFound
        return LeaderNotAvailable
