"""The common parts of ShareFetch and ShareAcknowledge: sessions, acknowledgements and leaders.

Knows nothing else of either API.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.rebalance_protocols import SHARE, require_protocol
from barnabas.broker.share_sessions import SessionKey
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import (
    FencedLeaderEpoch,
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.groups.share.messages import LONGEST_MEMBER_ID
from barnabas.security.acls import Operation, ResourceType
from barnabas.share.messages import TopicPartition
from barnabas.share.partition import Acknowledgement
from barnabas.share.states import GAP, REJECT, RENEW

if TYPE_CHECKING:
    from barnabas.api_handlers.access import Access
    from barnabas.broker.nodes import Node

WRONG_LEADER_ERRORS: Final = (NotLeaderOrFollower.code, FencedLeaderEpoch.code)
"""The errors with which the response names the leader."""


class Leader(Protocol):
    """The leader of a partition, in either response."""

    leader_id: int


class Answer(Protocol):
    """A partition of either response."""

    error_code: int

    @property
    def current_leader(self) -> Leader: ...


class AcknowledgementBatch(Protocol):
    """An acknowledgement batch of either request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Partition(Protocol):
    """A partition of either request."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[AcknowledgementBatch]: ...


class Topic(Protocol):
    """A topic of either request."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[Partition]: ...


def key_of(group_id: str | None, member_id: str | None, context: Context) -> SessionKey:
    """Returns the key of the request's session.

    :raises UnsupportedVersion: the cluster has no share groups
    :raises InvalidRequest: the group id is missing, or the member id is missing or too long
    """
    require_protocol(SHARE, context)
    if group_id is None or not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise InvalidRequest
    return SessionKey(group_id, member_id)


def hidden_topics(topic_ids: Iterable[bytes], access: "Access | None", image: MetadataImage) -> frozenset[bytes]:
    """Returns the ids of the topics that the sender may not read. Ids that do not exist hide nothing."""
    if access is None:
        return frozenset()
    names = {topic_id: image.topics_by_id[topic_id].name for topic_id in topic_ids if topic_id in image.topics_by_id}
    readable = access.allowed(Operation.READ, ResourceType.TOPIC, names.values())
    return frozenset(topic_id for topic_id, name in names.items() if name not in readable)


def acknowledgements(
    topics: Iterable[Topic], image: MetadataImage, *, is_renewal: bool, hidden: frozenset[bytes] = frozenset()
) -> tuple[dict[TopicPartition, list[Acknowledgement]], dict[TopicPartition, KafkaError | None]]:
    """Returns the acknowledgements by partition, and the partitions whose acknowledgements are refused.

    :param hidden: the topics that the sender may not read
    """
    acknowledged: dict[TopicPartition, list[Acknowledgement]] = {}
    refused: dict[TopicPartition, KafkaError | None] = {}
    for topic in topics:
        for partition in topic.partitions:
            at = topic.topic_id, partition.partition_index
            batches = partition.acknowledgement_batches
            if not batches:
                continue
            known = image.topics_by_id.get(topic.topic_id)
            if known is None:
                refused[at] = UnknownTopicId()
            elif topic.topic_id in hidden:
                refused[at] = TopicAuthorizationFailed()
            elif not are_valid(batches, is_renewal=is_renewal):
                refused[at] = InvalidRequest()
            elif partition.partition_index not in known.partitions:
                refused[at] = UnknownTopicOrPartition()
            else:
                acknowledged[at] = [
                    Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types) for each in batches
                ]
    return acknowledged, refused


def are_valid(batches: Sequence[AcknowledgementBatch], *, is_renewal: bool) -> bool:
    """Returns whether acknowledgement batches are valid, whatever is acquired: their order, and their types."""
    last = -1
    newest = RENEW if is_renewal else REJECT
    for batch in batches:
        types, count = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
        if count < 1 or batch.first_offset < last or len(types) not in (1, count):
            return False
        for kind in types:
            if not GAP <= kind <= newest:
                return False
        last = batch.last_offset
    return True


def leader_of(at: TopicPartition, error: KafkaError | None, image: MetadataImage) -> tuple[int, int]:
    """Returns leader and leader epoch if the error is that of a wrong leader; 0 and 0 otherwise."""
    if error is None or error.code not in WRONG_LEADER_ERRORS:
        return 0, 0
    topic = image.topics_by_id.get(at[0])
    partition = topic.partitions.get(at[1]) if topic is not None else None
    return (0, 0) if partition is None else (partition.leader, partition.leader_epoch)


def leader_endpoints(answers: Iterable[Answer], context: Context) -> "list[Node]":
    """Returns the endpoints of the leaders that the response names."""
    leaders = {each.current_leader.leader_id for each in answers if each.error_code in WRONG_LEADER_ERRORS}
    if not leaders:
        return []
    return [node for node in context.broker.nodes.of(context.session.listener).values() if node.id in leaders]


def message_of(error: KafkaError | None) -> str | None:
    """Returns the error's text, if it was raised with one."""
    return str(error) if error is not None and error.args else None
