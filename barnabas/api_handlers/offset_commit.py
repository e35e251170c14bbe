"""OffsetCommit (API key 8): a group keeps how far it has read.

Knows nothing of who may commit, which the group says; only that a topic has to be there, which is looked at first.
Versions 0 and 1, which Apache Kafka 4 has dropped, are taken for what they say: a simple consumer's, and a member's.
Version 0 kept offsets in ZooKeeper; they are kept here, where Kafka 3 without ZooKeeper refused them.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.offsets_to_commit import Codes, look_up, told
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.groups.messages import OffsetCommit
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

Topic = OffsetCommitResponse.OffsetCommitResponseTopic

ASKS_FOR_COORDINATOR = 1
"""Clients that speak an earlier version never ask who coordinates their group."""

KNOWS_GROUP_ID_NOT_FOUND = KNOWS_MEMBER_EPOCHS = 9
BY_ID = 10


@api(OffsetCommitRequest)
def offset_commit(request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse | Later[OffsetCommitResponse]:
    """Commit what is about partitions that there are; answered when it is written."""
    broker = context.broker
    asked = look_up(request.topics, broker.image, by_id=context.api_version >= BY_ID)
    if not asked.taken:
        return _response(asked.answers([]))
    later: Later[OffsetCommitResponse] = Later()
    commit = OffsetCommit(
        request.group_id,
        asked.offsets,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        context.api_version >= KNOWS_GROUP_ID_NOT_FOUND,
        knows_member_epochs=context.api_version >= KNOWS_MEMBER_EPOCHS,
    )

    def answer(codes: list[int]) -> None:
        later.resolve(_response(asked.answers(codes)))

    def commit_offsets(error: KafkaError | None = None) -> None:
        try:
            if error is not None:
                raise error
            broker.groups.commit_offsets(commit, answer)
        except KafkaError as refusal:
            answer([refusal.code] * len(commit.offsets))

    if context.api_version < ASKS_FOR_COORDINATOR:
        broker.coordinators.groups.create_topic(commit_offsets)
    else:
        commit_offsets()
    return later


def _response(answers: Codes) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=told(answers, Topic, Topic.OffsetCommitResponsePartition))
