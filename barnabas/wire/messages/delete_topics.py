"""DeleteTopics (API key 20): delete topics.

v1 throttle_time_ms · v2 throttled after the response (KIP-219) · v3 TOPIC_DELETION_DISABLED (KIP-322) · v4 flexible ·
v5 error_message, THROTTLING_QUOTA_EXCEEDED (KIP-599) · v6 by id as well (KIP-516)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, string, uuid


class DeleteTopicsRequest(Request, api_key=20, versions="0-6", flexible="4+"):
    class DeleteTopicState(Struct):
        name: string | None = None  #: null: by id
        topic_id: uuid

    topics: list[DeleteTopicState] = field("6+", default=())
    topic_names: list[string] = field("0-5", default=())
    timeout_ms: int32


class DeleteTopicsResponse(Response, to=DeleteTopicsRequest):
    class DeletableTopicResult(Struct):
        name: string | None = field(nullable="6+")
        topic_id: uuid = field("6+", default=ZERO_UUID)
        error_code: int16 = 0
        error_message: string | None = field("5+", default=None)

    throttle_time_ms: int32 = field("1+", default=0)
    responses: list[DeletableTopicResult]
