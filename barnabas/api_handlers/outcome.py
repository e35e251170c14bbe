"""What an answer says of an error, and of what the asker may do.

Knows nothing of any API.
"""

from barnabas.errors import NONE, InvalidProducerEpoch, KafkaError, ProducerFenced, RequestTimedOut

NOT_ASKED = -(1 << 31)
"""What the fields for authorized operations hold when nobody asked for them."""

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12


def bits(*operations: int) -> int:
    """A bit for each operation, by its code (``AclOperation``)."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
"""Without an authorizer everybody may do whatever can be done to a topic (``AclEntry.supportedOperations``)."""

CLUSTER_OPERATIONS = bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)


def out_of_time(timeout_ms: int) -> KafkaError | None:
    """The error where a client gives the controller no time at all; it then does nothing (``QuorumController``)."""
    return RequestTimedOut() if timeout_ms <= 0 else None


def code_of(error: KafkaError | None) -> int:
    """The error's code; 0 for none."""
    return NONE if error is None else error.code


def coordinators_code(error: type[KafkaError] | None, version: int, *, fenced_since: int = 2) -> int:
    """What the transaction coordinator has said, to a client that speaks ``version``; 0 where nothing is wrong.

    Before version ``fenced_since`` clients do not know PRODUCER_FENCED (KIP-588).
    """
    if error is None:
        return NONE
    return InvalidProducerEpoch.code if error is ProducerFenced and version < fenced_since else error.code


def message_of(error: KafkaError | None) -> str | None:
    """What was said when the error was raised; None when that was nothing, or there is none."""
    return str(error) if error is not None and error.args else None
