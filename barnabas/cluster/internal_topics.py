"""The topics in which coordinators keep their state: how many partitions they have, and which configs.

Knows nothing of what is in them. As Apache Kafka's ``DefaultAutoTopicCreationManager`` makes them.
"""

from barnabas.cluster.commands import NewTopic
from barnabas.cluster.decision import Settings
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

_PREFIX = {
    CONSUMER_OFFSETS: "offsets.topic",
    TRANSACTION_STATE: "transaction.state.log",
    SHARE_GROUP_STATE: "share.coordinator.state.topic",
}


def new_internal_topic(name: str, settings: Settings) -> NewTopic:
    """The internal topic of that name, as the broker's settings want it."""
    prefix = _PREFIX[name]
    configs = {"segment.bytes": str(settings[f"{prefix}.segment.bytes"])}
    if name == CONSUMER_OFFSETS:
        configs |= {"cleanup.policy": "compact", "compression.type": "producer"}
    elif name == TRANSACTION_STATE:
        configs |= {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(settings[f"{prefix}.min.isr"]),
            "unclean.leader.election.enable": "false",
        }
    else:
        configs |= {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(settings[f"{prefix}.min.isr"]),
            "retention.ms": "-1",
        }
    return NewTopic(
        name,
        settings[f"{prefix}.num.partitions"],
        settings[f"{prefix}.replication.factor"],
        configs=list(configs.items()),
    )
