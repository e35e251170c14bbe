"""Sends the markers of transactions to the leaders of their partitions.

Knows nothing of why a transaction ends, nor of when a marker is retried. Model: Apache Kafka's
``TransactionMarkerChannelManager``.
"""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import (
    NONE,
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailable,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.peers.peers import Peers, error_of
from barnabas.transactions.messages import Marker, PartitionErrors, TopicPartition, by_topic
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

TxnMarker = WriteTxnMarkersRequest.WritableTxnMarker
Topic = TxnMarker.WritableTxnMarkerTopic

Done = Callable[[PartitionErrors], object]

LANE = "txn-marker-sender"
"""Markers have a lane of their own: their responses wait for the in-sync replicas, and would hold up other requests."""


class MarkerSender:
    """The marker sender of one node. :meth:`send` is the ``SendMarkers`` of its transaction coordinator."""

    def __init__(self, peers: Peers, image: Callable[[], MetadataImage]) -> None:
        self._peers = peers
        self._image = image

    def send(self, marker: Marker, partitions: Sequence[TopicPartition], done: Done) -> None:
        """Sends the marker to each leader, and calls ``done`` with the errors of each response as it arrives.

        UNKNOWN_TOPIC_OR_PARTITION is the error of a partition that the metadata does not know; it needs no marker. A
        partition without a leader, or whose leader cannot be reached, has a retriable error.
        """
        image = self._image()
        brokers = image.brokers
        by_leader: dict[int, list[TopicPartition]] = {}
        errors: dict[TopicPartition, KafkaError | None] = {}
        for each in partitions:
            known = image.partition(*each)
            if known is None:
                errors[each] = UnknownTopicOrPartition()
                continue
            led = by_leader.get(known.leader)
            if led is not None:
                led.append(each)
            elif known.leader in brokers and not brokers[known.leader].fenced:
                by_leader[known.leader] = [each]
            else:
                errors[each] = LeaderNotAvailable()
        if errors:
            done(errors)
        for leader, led in by_leader.items():
            self._peers.send(leader, _request(marker, led), partial(self._answered, marker, led, done), lane=LANE)

    def _answered(
        self,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        done: Done,
        response: WriteTxnMarkersResponse | None,
        error: KafkaError | None,
    ) -> None:
        if response is None:
            done(dict.fromkeys(partitions, error))
            return
        codes = {
            (topic.name, each.partition_index): each.error_code
            for result in response.markers
            if result.producer_id == marker.producer_id
            for topic in result.topics
            for each in topic.partitions
        }
        errors: dict[TopicPartition, KafkaError | None] = {}
        for each in partitions:
            code = codes.get(each, UnknownServerError.code)
            errors[each] = None if code == NONE else self._error(each, code)
        done(errors)

    def _error(self, partition: TopicPartition, code: int) -> KafkaError | None:
        error = error_of(code)
        if isinstance(error, UnknownTopicOrPartition) and self._image().partition(*partition) is not None:
            # The leader's log directory is offline, or its metadata is stale: the transaction may still be open there.
            return KafkaStorageError()
        return error


def _request(marker: Marker, partitions: Sequence[TopicPartition]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            TxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.is_commit,
                topics=[Topic(name=name, partition_indexes=indexes) for name, indexes in by_topic(partitions).items()],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        ]
    )
