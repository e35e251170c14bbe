"""The valid names of topics, and the internal topics.

Knows nothing of existing topics. The rules are those of Apache Kafka's ``org.apache.kafka.common.internals.Topic``.
"""

from barnabas.errors import InvalidTopicException

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"

INTERNAL = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topics that clients see as internal. The metadata log is not included, since clients do not see it."""

MAX_LENGTH = 249
INVALID = "Topic name is invalid: "
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_topic_name(name: str) -> None:
    """Checks the name of a topic.

    :raises InvalidTopicException: the name is not valid
    """
    if not name:
        raise InvalidTopicException(f"{INVALID}the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopicException(f"{INVALID}'{name}' is not allowed")
    if len(name) > MAX_LENGTH:
        raise InvalidTopicException(
            f"{INVALID}the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
        )
    if not _LEGAL.issuperset(name):
        raise InvalidTopicException(
            f"{INVALID}'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        )


def is_legal_topic_name(name: str) -> bool:
    return 0 < len(name) <= MAX_LENGTH and _LEGAL.issuperset(name) and name not in (".", "..")


def collision_key(name: str) -> str:
    """Returns a key by which names collide: in metrics ``.`` and ``_`` are the same character."""
    return name.replace(".", "_")
