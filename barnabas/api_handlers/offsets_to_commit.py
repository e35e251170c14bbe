"""What OffsetCommit and TxnOffsetCommit have in common: which of the offsets are about partitions that there are.

Knows nothing of groups and transactions, who say whether those may be committed.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.api_handlers.by_topic import Answers, merged
from barnabas.cluster.image import MetadataImage, TopicImage
from barnabas.errors import KafkaError, UnknownTopicId, UnknownTopicOrPartition
from barnabas.groups.messages import OffsetToCommit
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

AskedTopic = OffsetCommitRequest.OffsetCommitRequestTopic | TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic


class TopicKey(NamedTuple):
    """A topic as the request names it: by its name, or in newer versions by its id."""

    name: str
    id: bytes


Codes = Answers[TopicKey, tuple[int, int]]
"""By topic: partitions, each with its error code."""


class AskedOffsets(NamedTuple):
    """The partitions of a request: those that there are none of, with their errors, and those that there are."""

    refused: list[tuple[TopicKey, tuple[int, int]]]
    taken: list[tuple[TopicKey, list[OffsetToCommit]]]

    @property
    def offsets(self) -> list[OffsetToCommit]:
        """All that can be committed."""
        return [each for _, of_topic in self.taken for each in of_topic]

    def answers(self, codes: Iterable[int]) -> Codes:
        """With a code for each of :attr:`offsets`, what is to be answered about all that was asked."""
        left = iter(codes)
        return merged(
            self.refused,
            [(key, [(each.partition, next(left)) for each in of_topic]) for key, of_topic in self.taken],
        )


def look_up(topics: Sequence[AskedTopic], image: MetadataImage, *, by_id: bool) -> AskedOffsets:
    """Look at the topics before anybody looks at the group."""
    asked = AskedOffsets([], [])
    for topic in topics:
        found, missing = _topic(topic, image, by_id)
        key = TopicKey(topic.name, topic.topic_id)
        taken = []
        for each in topic.partitions:
            index = each.partition_index
            if found is None or index not in found.partitions:
                asked.refused.append((key, (index, missing.code)))
                continue
            offset, epoch, metadata = each.committed_offset, each.committed_leader_epoch, each.committed_metadata
            taken.append(OffsetToCommit(found.name, index, offset, epoch, metadata, found.id))
        if taken:
            asked.taken.append((key, taken))
    return asked


def told(codes: Codes, topic: Any, partition: Any) -> list[Any]:
    """The answers, as the structs ``topic`` and ``partition``: there are two pairs of them, which are alike."""
    return [
        topic(
            name=key.name,
            topic_id=key.id,
            partitions=[partition(partition_index=index, error_code=code) for index, code in of_topic],
        )
        for key, of_topic in codes
    ]


def _topic(topic: AskedTopic, image: MetadataImage, by_id: bool) -> tuple[TopicImage | None, type[KafkaError]]:
    """The topic, and what to say of partitions that are not there."""
    if not by_id:
        return image.topics_by_name.get(topic.name), UnknownTopicOrPartition
    found = image.topics_by_id.get(topic.topic_id)
    return found, UnknownTopicId if found is None else UnknownTopicOrPartition
