"""Which types of groups this broker serves: those in its config, if the cluster has their feature.

Knows nothing of their requests.
"""

from typing import Final

from barnabas.api_handlers.context import Context
from barnabas.cluster.features import SHARE_VERSION
from barnabas.errors import UnsupportedVersion

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"

FEATURES: Final = {CONSUMER: "group.version", SHARE: SHARE_VERSION, STREAMS: "streams.version"}
"""The feature that each type needs at level 1."""


def require_protocol(kind: str, context: Context) -> None:
    """Checks that groups of that type are served (``KafkaApis.isStreamsGroupProtocolEnabled`` and its like).

    For share groups the feature alone decides: since Apache Kafka 4.2 they need not be named in the config.

    :raises UnsupportedVersion: they are not
    """
    broker = context.broker
    is_configured = kind == SHARE or kind in broker.config["group.coordinator.rebalance.protocols"]
    if not is_configured or not broker.image.features.get(FEATURES[kind]):
        raise UnsupportedVersion
