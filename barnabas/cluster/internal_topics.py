"""The internal topics of coordinators: their partitions, replicas and configs.

Knows nothing of their records. They are those of Apache Kafka's ``DefaultAutoTopicCreationManager``, except that the
default replication factor in a cluster of one node is 1.
"""

import logging

from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.config import BrokerConfig
from barnabas.config.profile import SINGLE_NODE
from barnabas.config.settings import Settings

logger = logging.getLogger(__name__)

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


def is_single_node(image: MetadataImage, node_id: int) -> bool:
    """Returns whether no other broker and no other controller is registered."""
    return image.brokers.keys() <= {node_id} and image.controllers.keys() <= {node_id}


def log_single_node_defaults(config: BrokerConfig) -> None:
    """Logs which configs have other defaults than in Apache Kafka because the cluster has one node."""
    changed = [name for name in SINGLE_NODE if not config.is_set(name)]
    if config.single_node and changed:
        logger.info("The cluster has one node, so the default of these configs is 1: %s", ", ".join(changed))
