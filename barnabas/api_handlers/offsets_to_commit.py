"""The common part of OffsetCommit and TxnOffsetCommit: which partitions of the request exist.

Knows nothing of groups and transactions, which decide whether the offsets may be committed.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.api_handlers.by_topic import Answers, merged
from barnabas.api_handlers.outcome import code_of
from barnabas.cluster.image.image import MetadataImage, TopicImage
from barnabas.errors import KafkaError, UnknownTopicId, UnknownTopicOrPartition
from barnabas.groups.messages import OffsetToCommit
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

RequestTopic = OffsetCommitRequest.OffsetCommitRequestTopic | TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic


class TopicKey(NamedTuple):
    """A topic as the request names it: by name, or by id in newer versions."""

    name: str
    id: bytes


Results = Answers[TopicKey, tuple[int, int]]
"""Partitions and their error codes, by topic."""


class RequestedOffsets(NamedTuple):
    """The partitions of a request: those that do not exist, with their error codes, and those that exist."""

    refused: list[tuple[TopicKey, tuple[int, int]]]
    existing: list[tuple[TopicKey, list[OffsetToCommit]]]

    @property
    def offsets(self) -> list[OffsetToCommit]:
        """The offsets of partitions that exist."""
        return [each for _, of_topic in self.existing for each in of_topic]

    def results(self, errors: Iterable[KafkaError | None]) -> Results:
        """Returns the error codes of all partitions, given the error of each of :attr:`offsets`."""
        remaining = map(code_of, errors)
        return merged(
            self.refused,
            [(key, [(each.partition, next(remaining)) for each in of_topic]) for key, of_topic in self.existing],
        )


def look_up(topics: Sequence[RequestTopic], image: MetadataImage, *, by_id: bool) -> RequestedOffsets:
    """Separates the partitions that exist from those that do not."""
    requested = RequestedOffsets([], [])
    for topic in topics:
        found, missing = _topic(topic, image, by_id)
        key = TopicKey(topic.name, topic.topic_id)
        offsets = []
        for each in topic.partitions:
            index = each.partition_index
            if found is None or index not in found.partitions:
                requested.refused.append((key, (index, missing.code)))
                continue
            offset, epoch, metadata = each.committed_offset, each.committed_leader_epoch, each.committed_metadata
            offsets.append(OffsetToCommit(found.name, index, offset, epoch, metadata, found.id))
        if offsets:
            requested.existing.append((key, offsets))
    return requested


def response_topics(results: Results, topic: Any, partition: Any) -> list[Any]:
    """Returns the topics of a response, as instances of these two structs: both responses have the same fields."""
    return [
        topic(
            name=key.name,
            topic_id=key.id,
            partitions=[partition(partition_index=index, error_code=code) for index, code in of_topic],
        )
        for key, of_topic in results
    ]


def _topic(topic: RequestTopic, image: MetadataImage, by_id: bool) -> tuple[TopicImage | None, type[KafkaError]]:
    """Returns the topic, and the error of its partitions that do not exist."""
    if not by_id:
        return image.topics_by_name.get(topic.name), UnknownTopicOrPartition
    found = image.topics_by_id.get(topic.topic_id)
    return found, UnknownTopicId if found is None else UnknownTopicOrPartition
