"""DescribeProducers (API key 61): the state of the producers of partitions (KIP-664).

Knows nothing of when the state of a producer is stored, or expires.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import message_of
from barnabas.api_handlers.registry import api
from barnabas.cluster.topic_names import check_topic_name
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

Topic = DescribeProducersResponse.TopicResponse
Answer = Topic.PartitionResponse


@api(DescribeProducersRequest)
def describe_producers(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    """Describes the producers of each partition. A partition that is requested twice is described twice."""
    return DescribeProducersResponse(
        topics=[
            Topic(name=topic.name, partitions=[answer(topic.name, index, context) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def answer(topic: str, index: int, context: Context) -> Answer:
    try:
        check_topic_name(topic)
        if topic not in context.broker.image.topics_by_name:
            # Apache Kafka has an error message for a missing topic, and none for a missing partition.
            raise UnknownTopicOrPartition(UnknownTopicOrPartition.message)
        partition = context.broker.partition(topic, index)
        partition.check_epoch(-1)  # any replica knows them
    except KafkaError as error:
        return Answer(
            partition_index=index, error_code=error.code, error_message=message_of(error), active_producers=[]
        )
    return Answer(
        partition_index=index,
        active_producers=[
            Answer.ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer in partition.log.producers.entries.values()
        ],
    )
