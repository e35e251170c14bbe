"""Asks the leaders of partitions for their high watermarks (ListOffsets with the latest timestamp).

Knows nothing of what the offsets are for. Apache Kafka's ``NetworkPartitionMetadataClient``.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from barnabas.broker.leaders import leader_of
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import KafkaError, LeaderNotAvailable, UnknownTopicOrPartition
from barnabas.peers.peers import Peers, error_of
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST = -1
CONSUMER = -1

Place = tuple[str, int]
Offsets = Mapping[Place, int | KafkaError]
Topic = ListOffsetsRequest.ListOffsetsTopic


def latest_offsets(
    peers: Peers, image: MetadataImage, partitions: Iterable[Place], done: Callable[[Offsets], object]
) -> None:
    """Calls ``done`` with the high watermark of each partition, or the error with which its leader answers."""
    found: dict[Place, int | KafkaError] = {}
    by_leader: dict[int, list[Place]] = {}
    for place in partitions:
        leader = leader_of(image, *place)
        if leader is None:
            found[place] = LeaderNotAvailable()
        else:
            by_leader.setdefault(leader, []).append(place)
    waiting = len(by_leader)

    def answered(places: list[Place], response: ListOffsetsResponse | None, error: KafkaError | None) -> None:
        nonlocal waiting
        waiting -= 1
        found.update(dict.fromkeys(places, error or UnknownTopicOrPartition()))
        if response is not None:
            for topic in response.topics:
                for each in topic.partitions:
                    found[topic.name, each.partition_index] = error_of(each.error_code) or each.offset
        if not waiting:
            done(found)

    if not by_leader:
        done(found)
    for leader, places in by_leader.items():
        peers.send(leader, _request(places), partial(answered, places))


def _request(places: Iterable[Place]) -> ListOffsetsRequest:
    topics: dict[str, Topic] = {}
    for name, index in places:
        topic = topics.setdefault(name, Topic(name=name, partitions=[]))
        topic.partitions.append(Topic.ListOffsetsPartition(partition_index=index, timestamp=LATEST))
    return ListOffsetsRequest(replica_id=CONSUMER, topics=list(topics.values()))
