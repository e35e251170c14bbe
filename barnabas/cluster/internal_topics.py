"""The internal topics of coordinators: their partitions, replicas and configs.

Knows nothing of their records. They are those of Apache Kafka's ``DefaultAutoTopicCreationManager``, except that the
default replication factor in a cluster of one node is 1.
"""

from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.config.settings import Settings

_PREFIX = {
    CONSUMER_OFFSETS: "offsets.topic",
    TRANSACTION_STATE: "transaction.state.log",
    SHARE_GROUP_STATE: "share.coordinator.state.topic",
}


def new_internal_topic(name: str, settings: Settings) -> NewTopic:
    """Returns the internal topic of that name, with the partitions, replicas and configs of the settings."""
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
