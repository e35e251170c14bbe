"""The table of rights: the rights that each API needs, and its response without them.

Knows nothing of how a guard works. The reference page about rights is made from this table, and an API without an entry
fails a test. Apache Kafka's ``KafkaApis`` and ``ControllerApis``, and its page "Operations and Resources on Protocols".
"""

from typing import Final, NamedTuple

from barnabas.api_handlers.rights import (
    groups,
    metadata,
    produce_and_fetch,
    share_offsets,
    tokens,
    topics,
    transactions,
)
from barnabas.api_handlers.rights.guard import EachOf, Guard, Order, everybody, on, on_cluster, then_showing
from barnabas.security.acls import Operation, ResourceType

READ, WRITE, CREATE, DELETE, ALTER = (
    Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER,
)  # fmt: skip
DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS = Operation.DESCRIBE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS
ALTER_CONFIGS, IDEMPOTENT_WRITE = Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


class Need(NamedTuple):
    """One right that an API needs."""

    operation: Operation
    kind: ResourceType
    without: str  #: the response without it, in words


class Rights(NamedTuple):
    """What one API needs."""

    needs: tuple[Need, ...]
    guard: Guard
    note: str = ""


AT_THE_TOP: Final = "the request is refused"
EACH: Final = "it is refused, the others are answered"
HIDDEN: Final = "it is left out"


def _cluster(*operations: Operation, has_message: bool = True) -> Rights:
    """Returns the rights of an API that needs one of the operations on the cluster, or else fails as a whole."""
    note = "One of them is enough." if len(operations) > 1 else ""
    needs = tuple(Need(each, CLUSTER, AT_THE_TOP) for each in operations)
    return Rights(needs, on_cluster(*operations, has_message=has_message), note)


def _group(operation: Operation, inner: Guard = everybody, *others: Need, note: str = "") -> Rights:
    """Returns the rights of an API that is about one group."""
    return Rights((Need(operation, GROUP, AT_THE_TOP), *others), on(operation, GROUP, "group_id", inner), note)


def _each(operation: Operation, kind: ResourceType, entries: str, name: str, answers: str) -> Rights:
    """Returns the rights of an API whose entries are checked one by one."""
    return Rights((Need(operation, kind, EACH),), EachOf(operation, kind, entries, name, answers))


NOTHING: Final = Rights((), everybody)

OF_TOPICS: Final = EachOf(READ, TOPIC, "topics", "name", "topics", order=Order.FIRST)
"""READ on each topic of a commit or a deletion of offsets. The builders of the responses add refusals first."""

OFFSETS: Final = (Need(READ, GROUP, AT_THE_TOP), Need(READ, TOPIC, EACH))

ON_CONTROLLERS: Final[dict[int, Guard]] = {
    1: on_cluster(CLUSTER_ACTION),
    33: topics.alter_at_controller,
    44: topics.alter_at_controller,
    60: on_cluster(ALTER, inner=metadata.describe_cluster),
}
"""The guards of a controller's listeners, by API key, where they differ from those of a broker's."""

RIGHTS: Final[dict[int, Rights]] = {
    0: Rights(
        (Need(WRITE, TOPIC, EACH), Need(WRITE, TRANSACTIONAL_ID, "each partition is refused")),
        produce_and_fetch.produce,
        "The transactional id counts for transactional batches. With acks=0 a refusal closes the connection.",
    ),
    1: Rights(
        (Need(READ, TOPIC, EACH), Need(CLUSTER_ACTION, CLUSTER, "each partition is refused")),
        produce_and_fetch.fetch,
        "A follower needs CLUSTER_ACTION, a consumer READ. Sessions are judged at each request. On a controller's "
        "listener all need CLUSTER_ACTION.",
    ),
    2: _each(DESCRIBE, TOPIC, "topics", "name", "topics"),
    3: Rights(
        (
            Need(DESCRIBE, TOPIC, "it is refused; left out of all topics"),
            Need(CREATE, TOPIC, "it is not created, and refused"),
            Need(CREATE, CLUSTER, "instead of CREATE on the topic"),
            Need(DESCRIBE, CLUSTER, "no operation on the cluster is shown"),
        ),
        metadata.metadata,
        "CREATE counts where a missing topic would be created.",
    ),
    8: Rights(OFFSETS, on(READ, GROUP, "group_id", OF_TOPICS), "Without the group each partition is refused."),
    9: Rights(
        (Need(DESCRIBE, GROUP, EACH), Need(DESCRIBE, TOPIC, "it is refused; left out of all topics")),
        groups.offset_fetch,
    ),
    10: Rights(
        (
            Need(DESCRIBE, GROUP, EACH),
            Need(DESCRIBE, TRANSACTIONAL_ID, EACH),
            Need(CLUSTER_ACTION, CLUSTER, "share partitions are refused"),
        ),
        transactions.find_coordinator,
    ),
    11: _group(READ),
    12: _group(READ),
    13: _group(READ),
    14: Rights((Need(READ, GROUP, AT_THE_TOP),), groups.sync_group),
    15: Rights(
        (Need(DESCRIBE, GROUP, EACH),),
        then_showing(
            EachOf(DESCRIBE, GROUP, "groups", "", "groups", order=Order.FIRST),
            groups.show_operations,
        ),
    ),
    16: Rights(
        (Need(DESCRIBE, CLUSTER, "each group is judged by itself"), Need(DESCRIBE, GROUP, HIDDEN)), groups.list_groups
    ),
    17: NOTHING,
    18: NOTHING,
    19: Rights(
        (
            Need(CREATE, CLUSTER, "each topic is judged by itself"),
            Need(CREATE, TOPIC, EACH),
            Need(DESCRIBE_CONFIGS, TOPIC, "the configs of the new topic are not shown"),
        ),
        topics.create_topics,
    ),
    20: Rights(
        (Need(DELETE, TOPIC, EACH), Need(DESCRIBE, TOPIC, "a refusal by id does not name the topic")),
        topics.delete_topics,
    ),
    21: _each(DELETE, TOPIC, "topics", "name", "topics"),
    22: Rights(
        (
            Need(WRITE, TRANSACTIONAL_ID, AT_THE_TOP),
            Need(IDEMPOTENT_WRITE, CLUSTER, "WRITE on some topic is enough"),
            Need(WRITE, TOPIC, AT_THE_TOP),
        ),
        transactions.init_producer_id,
        "The transactional id, if there is one; otherwise one of the two others.",
    ),
    23: Rights(
        (Need(CLUSTER_ACTION, CLUSTER, "each topic is judged by itself"), Need(DESCRIBE, TOPIC, EACH)),
        transactions.offset_for_leader_epoch,
    ),
    24: Rights(
        (
            Need(WRITE, TRANSACTIONAL_ID, "each partition is refused"),
            Need(WRITE, TOPIC, "it is refused, and no other is added"),
            Need(CLUSTER_ACTION, CLUSTER, AT_THE_TOP),
        ),
        transactions.add_partitions_to_txn,
        "CLUSTER_ACTION counts from version 4 on, which brokers send, the others before.",
    ),
    25: Rights(
        (Need(WRITE, TRANSACTIONAL_ID, AT_THE_TOP), Need(READ, GROUP, AT_THE_TOP)),
        on(WRITE, TRANSACTIONAL_ID, "transactional_id", on(READ, GROUP, "group_id")),
    ),
    26: Rights((Need(WRITE, TRANSACTIONAL_ID, AT_THE_TOP),), on(WRITE, TRANSACTIONAL_ID, "transactional_id")),
    27: _cluster(ALTER, CLUSTER_ACTION),
    28: Rights(
        (Need(WRITE, TRANSACTIONAL_ID, AT_THE_TOP), *OFFSETS),
        on(WRITE, TRANSACTIONAL_ID, "transactional_id", on(READ, GROUP, "group_id", OF_TOPICS)),
        "Without the transactional id or the group each partition is refused.",
    ),
    29: _cluster(DESCRIBE),
    30: _cluster(ALTER),
    31: _cluster(ALTER),
    32: Rights(
        (
            Need(DESCRIBE_CONFIGS, TOPIC, EACH),
            Need(DESCRIBE_CONFIGS, GROUP, EACH),
            Need(DESCRIBE_CONFIGS, CLUSTER, "brokers, loggers and subscriptions to metrics are refused"),
        ),
        topics.describe_configs,
    ),
    33: Rights(
        (
            Need(ALTER_CONFIGS, TOPIC, EACH),
            Need(ALTER_CONFIGS, GROUP, EACH),
            Need(ALTER_CONFIGS, CLUSTER, "brokers, loggers and subscriptions to metrics are refused"),
        ),
        topics.alter,
    ),
    34: _cluster(ALTER),
    35: Rights(
        (Need(DESCRIBE, CLUSTER, "no directory is listed; from version 3 on the request is refused"),),
        share_offsets.describe_log_dirs,
    ),
    36: NOTHING,
    37: Rights((Need(ALTER, TOPIC, EACH),), topics.create_partitions),
    38: Rights(
        (Need(Operation.CREATE_TOKENS, ResourceType.USER, AT_THE_TOP),),
        tokens.create,
        "A token for oneself needs no right.",
    ),
    39: Rights((), everybody, "The owner and the renewers of a token."),
    40: Rights((), everybody, "The owner and the renewers of a token."),
    41: Rights(
        (
            Need(DESCRIBE, ResourceType.DELEGATION_TOKEN, HIDDEN),
            Need(Operation.DESCRIBE_TOKENS, ResourceType.USER, HIDDEN),
        ),
        everybody,  # the handler asks, token by token
        "One of them is enough. The owner and the renewers need none.",
    ),
    42: _each(DELETE, GROUP, "groups_names", "", "results"),
    43: _cluster(ALTER),
    44: Rights(
        (
            Need(ALTER_CONFIGS, TOPIC, EACH),
            Need(ALTER_CONFIGS, GROUP, EACH),
            Need(ALTER_CONFIGS, CLUSTER, "brokers, loggers and subscriptions to metrics are refused"),
        ),
        topics.alter,
    ),
    45: _cluster(ALTER),
    46: _cluster(DESCRIBE),
    47: _group(DELETE, groups.DELETED_OFFSETS, Need(READ, TOPIC, EACH)),
    48: _cluster(DESCRIBE_CONFIGS, has_message=False),
    49: _cluster(ALTER_CONFIGS),
    50: _cluster(DESCRIBE, has_message=False),
    51: _cluster(ALTER),
    52: _cluster(CLUSTER_ACTION),
    53: _cluster(CLUSTER_ACTION),
    54: _cluster(CLUSTER_ACTION),
    55: _cluster(DESCRIBE),
    56: _cluster(CLUSTER_ACTION),
    57: _cluster(ALTER),
    58: _cluster(CLUSTER_ACTION),
    59: _cluster(CLUSTER_ACTION),
    60: Rights(
        (Need(DESCRIBE, CLUSTER, "no operation on the cluster is shown"),),
        metadata.describe_cluster,
        "On a controller's listener it needs ALTER on the cluster, too.",
    ),
    61: Rights(
        (Need(READ, TOPIC, EACH),), EachOf(READ, TOPIC, "topics", "name", "topics", Order.REQUEST, has_message=True)
    ),
    62: _cluster(CLUSTER_ACTION),
    63: _cluster(CLUSTER_ACTION),
    64: _cluster(ALTER),
    65: Rights(
        (Need(DESCRIBE, TRANSACTIONAL_ID, EACH), Need(DESCRIBE, TOPIC, HIDDEN)),
        then_showing(
            EachOf(DESCRIBE, TRANSACTIONAL_ID, "transactional_ids", "", "transaction_states"), transactions.show_topics
        ),
    ),
    66: Rights((Need(DESCRIBE, TRANSACTIONAL_ID, HIDDEN),), transactions.list_transactions),
    67: _cluster(CLUSTER_ACTION),
    68: _group(
        READ,
        groups.consumer_topics,
        Need(DESCRIBE, TOPIC, "the request is refused"),
        note="Of what a regular expression matches, hidden topics are not assigned.",
    ),
    69: Rights(
        (Need(DESCRIBE, GROUP, EACH), Need(DESCRIBE, TOPIC, "the group is refused")),
        then_showing(EachOf(DESCRIBE, GROUP, "group_ids", "", "groups", order=Order.FIRST), groups.hide_groups),
    ),
    70: _cluster(CLUSTER_ACTION),
    71: NOTHING,
    72: NOTHING,
    73: _cluster(CLUSTER_ACTION),
    74: _cluster(DESCRIBE_CONFIGS),
    75: Rights((Need(DESCRIBE, TOPIC, "it is refused; left out of all topics"),), metadata.describe_topic_partitions),
    76: _group(READ, groups.subscribed_topics, Need(DESCRIBE, TOPIC, "the request is refused")),
    77: Rights(
        (Need(DESCRIBE, GROUP, EACH), Need(DESCRIBE, TOPIC, "the group is refused")),
        then_showing(EachOf(DESCRIBE, GROUP, "group_ids", "", "groups", order=Order.FIRST), groups.hide_groups),
    ),
    78: _group(READ, produce_and_fetch.share_fetch, Need(READ, TOPIC, EACH)),
    79: _group(READ, produce_and_fetch.share_acknowledge, Need(READ, TOPIC, EACH)),
    **dict.fromkeys((83, 84, 85, 86, 87), _cluster(CLUSTER_ACTION)),
    80: _cluster(ALTER),
    81: _cluster(ALTER),
    82: _cluster(CLUSTER_ACTION),
    88: _group(
        READ,
        groups.streams_topics,
        Need(DESCRIBE, TOPIC, "the request is refused"),
        Need(CREATE, TOPIC, "internal topics stay missing"),
        Need(CREATE, CLUSTER, "instead of CREATE on the topics"),
    ),
    89: Rights(
        (Need(DESCRIBE, GROUP, EACH), Need(DESCRIBE, TOPIC, "the group is refused")),
        then_showing(EachOf(DESCRIBE, GROUP, "group_ids", "", "groups", order=Order.FIRST), groups.hide_groups),
    ),
    90: Rights(
        (Need(DESCRIBE, GROUP, EACH), Need(DESCRIBE, TOPIC, "it is refused; left out of all topics")),
        share_offsets.describe_share_group_offsets,
    ),
    91: Rights(
        (Need(READ, GROUP, AT_THE_TOP), Need(READ, TOPIC, EACH)),
        on(READ, GROUP, "group_id", share_offsets.ALTERED, has_message=True),
    ),
    92: Rights(
        (Need(DELETE, GROUP, AT_THE_TOP), Need(READ, TOPIC, EACH)),
        on(DELETE, GROUP, "group_id", share_offsets.DELETED, has_message=True),
    ),
    93: _group(READ),
}
"""The rights by API key."""
