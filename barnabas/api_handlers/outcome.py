"""Fields that many responses have: error codes and messages, and the operations that a client is authorized for.

Knows nothing of any API.
"""

from barnabas.errors import NONE, InvalidProducerEpoch, KafkaError, ProducerFenced, RequestTimedOut

NOT_REQUESTED = -(1 << 31)
"""The value of authorized operations that the request did not ask for."""

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12


def bits(*operations: int) -> int:
    """Returns a number with a bit for each operation (``AclOperation``)."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
"""All operations on a topic (``AclEntry.supportedOperations``). Without an authorizer all are allowed."""

CLUSTER_OPERATIONS = bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)


def out_of_time(timeout_ms: int) -> KafkaError | None:
    """Returns the error if a request gives the controller no time. It then does nothing (``QuorumController``)."""
    return RequestTimedOut() if timeout_ms <= 0 else None


def code_of(error: KafkaError | None) -> int:
    """Returns the code of the error, 0 for none."""
    return NONE if error is None else error.code


def coordinators_code(error: KafkaError | None, version: int, *, fenced_since: int = 2) -> int:
    """Returns the code of a transaction coordinator's error in that version of the request, 0 for none.

    :param fenced_since: the version from which on clients know PRODUCER_FENCED (KIP-588)
    """
    if error is None:
        return NONE
    is_unknown = isinstance(error, ProducerFenced) and version < fenced_since
    return InvalidProducerEpoch.code if is_unknown else error.code


def message_of(error: KafkaError | None) -> str | None:
    """Returns the text with which the error was raised; None if there is no text, or no error."""
    return str(error) if error is not None and error.args else None


def text_of(error: KafkaError | None) -> str | None:
    """Returns the text of the error, or the default text of its code; None if there is no error."""
    return None if error is None else str(error)
