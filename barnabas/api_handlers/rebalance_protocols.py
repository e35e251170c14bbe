"""Which kinds of group this broker serves: those that its config names, and the cluster's features know.

Knows nothing of any kind's requests.
"""

from typing import Final

from barnabas.api_handlers.context import Context
from barnabas.cluster.features import SHARE_VERSION
from barnabas.errors import UnsupportedVersion

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"

FEATURES: Final = {CONSUMER: "group.version", SHARE: SHARE_VERSION, STREAMS: "streams.version"}
"""The feature that each kind comes with, at level 1."""


def serves(kind: str, context: Context) -> bool:
    """Whether groups of that kind are served (``KafkaApis.isStreamsGroupProtocolEnabled`` and its like).

    For share groups the feature alone decides: since Apache Kafka 4.2 they need not be named in the config.
    """
    broker = context.broker
    return (kind == SHARE or kind in broker.config["group.coordinator.rebalance.protocols"]) and bool(
        broker.image.features.get(FEATURES[kind])
    )


def require_protocol(kind: str, context: Context) -> None:
    """:raises UnsupportedVersion: groups of that kind are not served"""
    if not serves(kind, context):
        raise UnsupportedVersion
