"""WriteTxnMarkers (API key 27): transactions end on the partitions that this broker leads (KIP-98, KIP-1228).

Knows nothing of how a marker is written. A coordinator asks for it, and an admin who ends a transaction that hangs.
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

Asked = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = Result.WritableTxnMarkerTopicResult
PartitionResult = TopicResult.WritableTxnMarkerPartitionResult

Outcomes = dict[int, dict[TopicPartition, type[KafkaError] | None]]
"""By producer id; of a partition that is there twice the later stands."""


@api(WriteTxnMarkersRequest)
def write_txn_markers(
    request: WriteTxnMarkersRequest, context: Context
) -> WriteTxnMarkersResponse | Later[WriteTxnMarkersResponse]:
    """Write each marker to its partitions; answered when all of them are safe."""
    broker = context.broker
    outcomes: Outcomes = {}
    later: Later[WriteTxnMarkersResponse] = Later()
    written = 0

    def take(producer_id: int, errors: PartitionErrors) -> None:
        nonlocal written
        outcomes.setdefault(producer_id, {}).update(errors)
        written += 1
        if written == len(request.markers):
            later.resolve(response(outcomes))

    for asked in request.markers:
        places = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
        is_one = asked.producer_id != NO_PRODUCER_ID and asked.producer_epoch != NO_PRODUCER_EPOCH
        if not is_one and any(place in broker.partitions for place in places):
            return failed(request.markers)
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.coordinator_epoch,
            asked.transaction_result,
            asked.transaction_version,
        )
        write_markers(broker, marker, list(dict.fromkeys(places)), partial(take, asked.producer_id))
    return later if request.markers else WriteTxnMarkersResponse(markers=[])


def failed(markers: Iterable[Asked]) -> WriteTxnMarkersResponse:
    """No batch can be made of one of the markers: Apache Kafka then fails them all, also those that it has written."""
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


def topics(errors: Mapping[TopicPartition, type[KafkaError] | None]) -> list[TopicResult]:
    found: dict[str, list[PartitionResult]] = {}
    for (topic, index), error in errors.items():
        code = NONE if error is None else error.code
        found.setdefault(topic, []).append(PartitionResult(partition_index=index, error_code=code))
    return [TopicResult(name=name, partitions=partitions) for name, partitions in found.items()]
