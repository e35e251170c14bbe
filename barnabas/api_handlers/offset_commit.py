"""OffsetCommit (API key 8): a group commits offsets.

Knows nothing of who may commit. Partitions that do not exist are refused before the group checks the commit. Apache
Kafka 4 has dropped versions 0 and 1. Here they are the commits of a simple consumer and of a member. Version 0 stored
offsets in ZooKeeper, and Kafka 3 without ZooKeeper refused it; here they are stored like all others.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.offsets_to_commit import Results, look_up, response_topics
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.groups.messages import OffsetCommit
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

Topic = OffsetCommitResponse.OffsetCommitResponseTopic

ASKS_FOR_COORDINATOR = 1
"""Clients of older versions never look for the coordinator."""

KNOWS_GROUP_ID_NOT_FOUND = KNOWS_MEMBER_EPOCHS = 9
BY_ID = 10


@api(OffsetCommitRequest)
def offset_commit(request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse | Later[OffsetCommitResponse]:
    """Commits the offsets of partitions that exist. Responds once they are durable."""
    broker = context.broker
    requested = look_up(request.topics, broker.image, by_id=context.api_version >= BY_ID)
    if not requested.existing:
        return _response(requested.results([]))
    later: Later[OffsetCommitResponse] = Later()
    commit = OffsetCommit(
        request.group_id,
        requested.offsets,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        context.api_version >= KNOWS_GROUP_ID_NOT_FOUND,
        knows_member_epochs=context.api_version >= KNOWS_MEMBER_EPOCHS,
    )

    def answer(errors: list[KafkaError | None]) -> None:
        later.resolve(_response(requested.results(errors)))

    def commit_offsets(error: KafkaError | None = None) -> None:
        try:
            if error is not None:
                raise error
            broker.groups.commit_offsets(commit, answer)
        except KafkaError as refusal:
            answer([refusal] * len(commit.offsets))

    if context.api_version < ASKS_FOR_COORDINATOR:
        broker.coordinators.groups.create_topic(commit_offsets)
    else:
        commit_offsets()
    return later


def _response(answers: Results) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=response_topics(answers, Topic, Topic.OffsetCommitResponsePartition))
