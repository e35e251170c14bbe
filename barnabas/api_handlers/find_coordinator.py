"""FindCoordinator (API key 10): which broker to ask about a group, a transactional id or a share partition.

Knows nothing of what coordinators do. A message stands beside each error where Kafka has one: up to version 3 always
("NONE" when all is well), from version 4 on only where the kind of key is refused as such.
"""

import re
from collections.abc import Callable
from typing import Protocol

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Coordinator = FindCoordinatorResponse.Coordinator

GROUP, TRANSACTION, SHARE = range(3)

ASKS_FOR_SEVERAL = 4
KNOWS_SHARE = 6

NOBODY = -1

SHARE_PARTITION = re.compile(r".*:[A-Za-z0-9_-]{22}:-?\d{1,10}", re.DOTALL).fullmatch
"""Group, topic id and partition (Kafka's ``SharePartitionKey``)."""


class CoordinatorsLog(Protocol):
    """The log of a coordinator: the topic that keeps what it knows."""

    def create_topic(self) -> None: ...

    def is_coordinator(self, key: str, /) -> bool: ...


@api(FindCoordinatorRequest)
def find_coordinator(request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    """Tell the coordinator of each key; asking for the first makes the topic where it keeps what it knows."""
    if context.api_version >= ASKS_FOR_SEVERAL:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[_find(key, request.key_type, context) for key in keys])
    found = _find(request.key, request.key_type, context)
    error = KafkaError.by_code.get(found.error_code)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message="NONE" if error is None else str(error()),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(key: str, key_type: int, context: Context) -> Coordinator:
    find = FINDERS.get(key_type)
    if find is None:
        return _nobody(key, InvalidRequest, str(InvalidRequest()))
    try:
        return find(key, context)
    except KafkaError as error:
        return _nobody(key, type(error))


def _nobody(key: str, error: type[KafkaError], message: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NOBODY, host="", port=NOBODY, error_code=error.code, error_message=message)


def _group(key: str, context: Context) -> Coordinator:
    return _here(key, context, context.broker.group_log)


def _transaction(key: str, context: Context) -> Coordinator:
    return _here(key, context, context.broker.transaction_log)


def _here(key: str, context: Context, log: CoordinatorsLog) -> Coordinator:
    """Of one node, itself; under the address that the client's listener advertises."""
    broker = context.broker
    log.create_topic()
    if not log.is_coordinator(key):
        raise CoordinatorNotAvailable  # nobody leads its partition: the disk under that has failed
    for node in broker.nodes(context.listener):
        if node.id == broker.node_id:
            return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port, error_message="")
    raise CoordinatorNotAvailable


def _share(key: str, context: Context) -> Coordinator:
    if context.api_version < KNOWS_SHARE or not SHARE_PARTITION(key):
        raise InvalidRequest
    return _here(key, context, context.broker.share_state_log)


FINDERS: dict[int, Callable[[str, Context], Coordinator]] = {GROUP: _group, TRANSACTION: _transaction, SHARE: _share}
