"""DeleteShareGroupOffsets (API key 92): deletes the state of topics in an empty share group (KIP-932).

Knows nothing of how the share coordinator stores it.
"""

from collections.abc import Mapping

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.rebalance_protocols import SHARE, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.groups.share.messages import TopicErrors
from barnabas.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.wire.types import ZERO_UUID

Topic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
Answer = DeleteShareGroupOffsetsResponse | Later[DeleteShareGroupOffsetsResponse]

NO_OFFSETS = "There is no offset information to delete."


@api(DeleteShareGroupOffsetsRequest)
def delete_share_group_offsets(request: DeleteShareGroupOffsetsRequest, context: Context) -> Answer:
    """Deletes the state of the topics. Responds once that is durable."""
    image = context.broker.image
    names = list(dict.fromkeys(each.topic_name for each in request.topics))
    ids = {name: image.topics_by_name[name].id for name in names if name in image.topics_by_name}
    unknown = [_unknown(name) for name in names if name not in ids]
    later: Later[DeleteShareGroupOffsetsResponse] = Later()

    def deleted(found: TopicErrors | KafkaError) -> None:
        if isinstance(found, dict):
            later.resolve(DeleteShareGroupOffsetsResponse(responses=[*unknown, *_topics(ids, found)]))
        else:
            later.resolve(_refused(found))

    try:
        require_protocol(SHARE, context)
        context.broker.groups.share.delete_offsets(request.group_id, list(ids.values()), deleted)
    except KafkaError as error:
        return _refused(error)
    return later


def _topics(ids: Mapping[str, bytes], found: TopicErrors) -> list[Topic]:
    """Returns the topics of the response. Those without state come first, without an id."""
    without_state = [name for name, topic_id in ids.items() if isinstance(found[topic_id], UnknownTopicOrPartition)]
    return [_unknown(name, NO_OFFSETS) for name in without_state] + [
        _topic(name, topic_id, found[topic_id]) for name, topic_id in ids.items() if name not in without_state
    ]


def _topic(name: str, topic_id: bytes, error: KafkaError | None) -> Topic:
    if error is None:
        return Topic(topic_name=name, topic_id=topic_id)
    return Topic(topic_name=name, topic_id=topic_id, error_code=error.code, error_message=str(error))


def _unknown(name: str, message: str | None = None) -> Topic:
    error = UnknownTopicOrPartition(message) if message else UnknownTopicOrPartition()
    return Topic(topic_name=name, topic_id=ZERO_UUID, error_code=error.code, error_message=str(error))


def _refused(error: KafkaError) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=str(error), responses=[])
