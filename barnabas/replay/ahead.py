"""What has to be known of a recorded response before its request is sent.

Knows nothing of this run.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    KafkaError,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from barnabas.faults.seen import first_error
from barnabas.faults.subjects import TopicName, partition_of, topic_of
from barnabas.wire.messages.produce import ProduceResponse

REFUSALS: Final = frozenset(each.code for each in (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator))
"""Errors after which a coordinator has done nothing. A request that was recorded with such an error is not sent, since
it might succeed now and have an effect: each InitProducerId bumps the epoch, and each JoinGroup adds a member.
"""
NOT_WRITTEN: Final = frozenset(each.code for each in (FencedLeaderEpoch, NotLeaderOrFollower, UnknownLeaderEpoch))
"""Errors after which the leader of a partition has written nothing. The client has sent the records again."""

Place = tuple[str | None, int]
"""A topic and a partition."""


class Ahead(NamedTuple):
    """The recorded response."""

    is_empty: bool
    is_refusal: bool = False
    session_id: int = 0  #: of a Fetch
    sizes: dict[Place, int] = {}  #: the bytes of records by partition, for those that have records
    not_written: frozenset[Place] = frozenset()  #: partitions of a Produce without effect


def ahead_of(response: Any, topic_name: TopicName) -> Ahead:
    """Returns what has to be known of a response that is not empty; of one that cannot be decoded, with None."""
    if response is None:
        return Ahead(is_empty=False)
    refused = frozenset(
        place
        for place, each in partitions_in(response, topic_name)
        if isinstance(response, ProduceResponse) and each.error_code in NOT_WRITTEN
    )
    sizes = {
        place: len(each.records)
        for place, each in partitions_in(response, topic_name)
        if getattr(each, "records", None)
    }
    return Ahead(False, first_error(response) in REFUSALS, getattr(response, "session_id", 0), sizes, refused)


def partitions_in(message: Any, topic_name: TopicName) -> Iterator[tuple[Place, Any]]:
    """Yields the entries for partitions in a request or response of the leaders of partitions."""
    for array in ("responses", "topics", "topic_data"):
        for topic in getattr(message, array, None) or ():
            name = topic_of(topic, topic_name, is_topic=True)
            for inner in ("partitions", "partition_responses", "partition_data"):
                for each in getattr(topic, inner, None) or ():
                    if (partition := partition_of(each)) is not None:
                        yield (name, partition), each


def refused_in(response: Any, topic_name: TopicName) -> frozenset[Place]:
    """Returns the partitions with retriable errors in a response of the leaders of partitions; none if a topic of them
    is unknown.
    """
    refused = {place for place, each in partitions_in(response, topic_name) if is_retriable(each.error_code)}
    return frozenset() if any(topic is None for topic, _ in refused) else frozenset(refused)


def is_retriable(code: int) -> bool:
    """Returns whether a client repeats what has got an error."""
    error = KafkaError.by_code.get(code)
    return error is not None and error.retriable
