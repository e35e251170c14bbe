"""Whether a cluster has one node, and the defaults that follow from it.

Knows nothing of topics.
"""

import logging

from barnabas.cluster.image.image import MetadataImage
from barnabas.config import BrokerConfig
from barnabas.config.profile import SINGLE_NODE

logger = logging.getLogger(__name__)


def is_single_node(image: MetadataImage, node_id: int) -> bool:
    """Returns whether no other broker and no other controller is registered."""
    return image.brokers.keys() <= {node_id} and image.controllers.keys() <= {node_id}


def log_single_node_defaults(config: BrokerConfig) -> None:
    """Logs which configs have other defaults than in Apache Kafka because the cluster has one node."""
    changed = [name for name in SINGLE_NODE if not config.is_set(name)]
    if config.single_node and changed:
        logger.info("The cluster has one node, so the default of these configs is 1: %s", ", ".join(changed))
