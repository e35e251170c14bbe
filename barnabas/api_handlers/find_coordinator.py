"""FindCoordinator (API key 10): the coordinator of a group, a transactional id or a share partition.

Knows nothing of what coordinators do. The error message is Kafka's: up to version 3 always (``NONE`` without an error),
from version 4 on only for an unknown type of key.
"""

import re
from collections.abc import Callable
from typing import Protocol

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.registry import api
from barnabas.broker import Broker
from barnabas.broker.leaders import coordinator_of
from barnabas.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from barnabas.wire.message import Response
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Coordinator = FindCoordinatorResponse.Coordinator

GROUP, TRANSACTION, SHARE = range(3)

ASKS_FOR_SEVERAL = 4
KNOWS_SHARE = 6

NO_NODE = -1

SHARE_PARTITION = re.compile(r".*:[A-Za-z0-9_-]{22}:-?\d{1,10}", re.DOTALL).fullmatch
"""Group, topic id and partition (Kafka's ``SharePartitionKey``)."""


class CoordinatorTopic(Protocol):
    """The internal topic that keeps the state of one kind of coordinator."""

    topic: str

    def create_topic(self, done: Callable[[KafkaError | None], object]) -> None: ...

    def leads(self, key: str, /) -> bool: ...


@api(FindCoordinatorRequest)
def find_coordinator(
    request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse | Later[FindCoordinatorResponse]:
    """Names the coordinator of each key. The first request of a kind creates the internal topic."""
    version, broker, listener = context.api_version, context.broker, context.session.listener
    keys = request.coordinator_keys if version >= ASKS_FOR_SEVERAL else [request.key]
    topic_of = TOPIC_OF.get(request.key_type)
    is_valid = {key: _is_valid(key, request.key_type, version) for key in keys}
    if topic_of is None or not any(is_valid.values()):
        message = str(InvalidRequest()) if topic_of is None else ""
        return _response(version, [_failed(key, InvalidRequest(), message) for key in keys])
    topic = topic_of(broker)
    later: Later[FindCoordinatorResponse] = Later()

    def created(error: KafkaError | None) -> None:
        found = [
            _failed(key, error or InvalidRequest())
            if error is not None or not is_valid[key]
            else _find(key, broker, listener, topic)
            for key in keys
        ]
        later.resolve(_response(version, found))

    topic.create_topic(created)
    return later if later.response is None else later.response


def _is_valid(key: str, key_type: int, version: int) -> bool:
    return key_type != SHARE or (version >= KNOWS_SHARE and SHARE_PARTITION(key) is not None)


def _find(key: str, broker: Broker, listener: str, topic: CoordinatorTopic) -> Coordinator:
    """Returns the leader of the key's partition, under the address that it advertises for the client's listener."""
    node_id = coordinator_of(broker.image, topic.topic, key)
    node = None if node_id is None else broker.nodes.of(listener).get(node_id)
    # A partition of this node may have its log in a directory that is offline.
    if node is not None and (node_id != broker.node_id or topic.leads(key)):
        return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port, error_message="")
    return _failed(key, CoordinatorNotAvailable())


def _failed(key: str, error: KafkaError, message: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error.code, error_message=message)


@error_shape(FindCoordinatorRequest)
def _all_failed(request: FindCoordinatorRequest, error: KafkaError, version: int) -> Response:
    """Refuses each key with the general text of the error, as ``FindCoordinatorRequest.getErrorResponse``."""
    return derived(request, type(error)(), version, node_id=NO_NODE, port=NO_NODE)


def _response(version: int, found: list[Coordinator]) -> FindCoordinatorResponse:
    if version >= ASKS_FOR_SEVERAL:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    error = KafkaError.by_code.get(only.error_code)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message="NONE" if error is None else str(error()),
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


TOPIC_OF: dict[int, Callable[[Broker], CoordinatorTopic]] = {
    GROUP: lambda broker: broker.coordinators.groups,
    TRANSACTION: lambda broker: broker.coordinators.transactions,
    SHARE: lambda broker: broker.coordinators.share,
}
"""Types of keys (``CoordinatorType``)."""
