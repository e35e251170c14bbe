"""OffsetDelete (API key 47): removes committed offsets of topics without subscribers (KIP-496).

Knows nothing of subscriptions.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.by_topic import Answers, merged
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
Partition = Topic.OffsetDeleteResponsePartition


@api(OffsetDeleteRequest)
def offset_delete(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse | Later[OffsetDeleteResponse]:
    """Removes the offsets of partitions that exist. An error of the group precedes all others, unlike in
    OffsetCommit."""
    refused: list[tuple[str, tuple[int, int]]] = []
    existing: list[tuple[str, list[int]]] = []
    image = context.broker.image
    for topic in request.topics:
        present = []
        for each in topic.partitions:
            if image.partition(topic.name, each.partition_index) is None:
                refused.append((topic.name, (each.partition_index, UnknownTopicOrPartition.code)))
            else:
                present.append(each.partition_index)
        if present:
            existing.append((topic.name, present))
    later: Later[OffsetDeleteResponse] = Later()

    def answer(error: KafkaError | None, errors: list[KafkaError | None]) -> None:
        if error is not None:
            later.resolve(OffsetDeleteResponse(error_code=error.code, topics=[]))
            return
        remaining = map(code_of, errors)
        answers = [(name, [(index, next(remaining)) for index in of_topic]) for name, of_topic in existing]
        later.resolve(_response(merged(refused, answers)))

    positions = [(name, index) for name, of_topic in existing for index in of_topic]
    context.broker.groups.delete_offsets(request.group_id, positions, answer)
    return later


def _response(answers: Answers[str, tuple[int, int]]) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            Topic(
                name=name,
                partitions=[Partition(partition_index=index, error_code=code) for index, code in of_topic],
            )
            for name, of_topic in answers
        ]
    )
