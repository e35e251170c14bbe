"""WriteTxnMarkers (API key 27): writes the markers of transactions to the partitions that this broker leads (KIP-98,
KIP-1228).

Knows nothing of how a marker is written. Transaction coordinators send this request, and an admin client that aborts a
hanging transaction.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.broker.markers import write_markers
from barnabas.errors import NONE, KafkaError, UnknownServerError
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.transactions.messages import Marker, PartitionErrors, TopicPartition
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

WritableTxnMarker = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = Result.WritableTxnMarkerTopicResult
PartitionResult = TopicResult.WritableTxnMarkerPartitionResult

Outcomes = dict[int, dict[TopicPartition, KafkaError | None]]
"""Errors by producer id and partition. Of two for the same partition the last one counts."""


@api(WriteTxnMarkersRequest)
def write_txn_markers(
    request: WriteTxnMarkersRequest, context: Context
) -> WriteTxnMarkersResponse | Later[WriteTxnMarkersResponse]:
    """Writes each marker to its partitions. Responds once all of them are replicated or flushed."""
    broker = context.broker
    outcomes: Outcomes = {}
    later: Later[WriteTxnMarkersResponse] | None = None
    written = 0

    def collect(producer_id: int, errors: PartitionErrors) -> None:
        nonlocal written
        outcomes.setdefault(producer_id, {}).update(errors)
        written += 1
        if later is not None and written == len(request.markers):
            later.resolve(response(outcomes))

    for requested in request.markers:
        places = [TopicPartition(topic.name, index) for topic in requested.topics for index in topic.partition_indexes]
        has_producer = requested.producer_id != NO_PRODUCER_ID and requested.producer_epoch != NO_PRODUCER_EPOCH
        if not has_producer and any(place in broker.partitions for place in places):
            return failed(request.markers)
        marker = Marker(
            requested.producer_id,
            requested.producer_epoch,
            requested.coordinator_epoch,
            requested.transaction_result,
            requested.transaction_version,
        )
        write_markers(broker, marker, list(dict.fromkeys(places)), partial(collect, requested.producer_id))
    if written == len(request.markers):
        return response(outcomes)
    later = Later()
    return later


def failed(markers: Iterable[WritableTxnMarker]) -> WriteTxnMarkersResponse:
    """Returns the response if one marker has no producer. Apache Kafka then fails all markers, even written ones."""
    return WriteTxnMarkersResponse(
        markers=[
            Result(
                producer_id=marker.producer_id,
                topics=[
                    TopicResult(
                        name=topic.name,
                        partitions=[
                            PartitionResult(partition_index=index, error_code=UnknownServerError.code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in markers
        ]
    )


def response(outcomes: Outcomes) -> WriteTxnMarkersResponse:
    """Returns the response, which leaves out markers for no partition."""
    return WriteTxnMarkersResponse(
        markers=[
            Result(producer_id=producer_id, topics=topics(errors)) for producer_id, errors in outcomes.items() if errors
        ]
    )


def topics(errors: Mapping[TopicPartition, KafkaError | None]) -> list[TopicResult]:
    found: dict[str, list[PartitionResult]] = {}
    for (topic, index), error in errors.items():
        code = NONE if error is None else error.code
        found.setdefault(topic, []).append(PartitionResult(partition_index=index, error_code=code))
    return [TopicResult(name=name, partitions=partitions) for name, partitions in found.items()]
