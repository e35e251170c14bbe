"""AlterPartition (API key 56): the leader of partitions changes their ISRs (KIP-497, KIP-841, KIP-903).

Knows nothing of which replicas may be in the ISR: the controller decides.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.replicas import AlteredPartition, AlterPartition, IsrChange
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

Topic = AlterPartitionResponse.TopicData
Wanted = AlterPartitionRequest.TopicData.PartitionData

EPOCHS_SINCE = 3
"""The first version with the broker epochs of the ISR."""


@api(AlterPartitionRequest)
def alter_partition(
    request: AlterPartitionRequest, context: Context
) -> AlterPartitionResponse | Later[AlterPartitionResponse]:
    """Returns the new state of each partition, or the error with which the controller refused the change."""
    with_epochs = context.api_version >= EPOCHS_SINCE
    topics = [(topic.topic_id, [wanted(each, with_epochs) for each in topic.partitions]) for topic in request.topics]

    def respond(results: list[tuple[bytes, list[AlteredPartition]]]) -> AlterPartitionResponse:
        return AlterPartitionResponse(
            topics=[
                Topic(topic_id=topic_id, partitions=[altered(each) for each in partitions])
                for topic_id, partitions in results
            ]
        )

    return submit(AlterPartition(request.broker_id, request.broker_epoch, topics), request, context, respond)


def wanted(each: Wanted, with_epochs: bool) -> IsrChange:
    if with_epochs:
        isr = [(member.broker_id, member.broker_epoch) for member in each.new_isr_with_epochs]
    else:
        isr = [(broker_id, -1) for broker_id in each.new_isr]
    return IsrChange(each.partition_index, isr, each.leader_epoch, each.partition_epoch, each.leader_recovery_state)


def altered(each: AlteredPartition) -> Topic.PartitionData:
    image = each.image
    if image is None:
        assert each.error is not None
        return Topic.PartitionData(partition_index=each.partition, error_code=each.error.code)
    return Topic.PartitionData(
        partition_index=each.partition,
        leader_id=image.leader,
        leader_epoch=image.leader_epoch,
        isr=list(image.isr),
        leader_recovery_state=image.leader_recovery_state,
        partition_epoch=image.partition_epoch,
    )
