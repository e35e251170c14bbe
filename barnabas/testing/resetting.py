"""Brings a running broker back to the state of a new one, between two tests.

Knows nothing of threads: it runs in the broker's own.
"""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.broker import Broker
from barnabas.cluster.controller.commands import (
    SAFE_DOWNGRADE,
    UPGRADE,
    AlterConfigs,
    ConfigResource,
    DeleteTopics,
    FeatureUpdate,
    UpdateFeatures,
)
from barnabas.cluster.controller.controller import logged
from barnabas.cluster.controller.topic_decisions import MIN_INSYNC_REPLICAS
from barnabas.cluster.features import ELIGIBLE_LEADER_REPLICAS, FEATURES, METADATA_VERSION
from barnabas.config.dynamic import BROKER_RESOURCE
from barnabas.errors import KafkaError


def reset(broker: Broker, features: Mapping[str, int], done: Callable[[], object]) -> None:
    """Removes topics, groups, transactions, sessions and dynamic configs, and brings features back to these levels.

    ``metadata.version`` and ``kraft.version`` stay, since they cannot go down. Connections stay, too.
    """
    image, controller = broker.image, broker.controller
    updates = _updates(image.features, features)
    if updates:
        controller.submit(UpdateFeatures(updates), logged("the levels of features"))
    at_start = [(ConfigResource(*each), _configs_at_start(broker, each, features)) for each in image.configs]
    controller.submit(AlterConfigs(at_start), logged("the configs"))

    def deleted(result: Any, error: KafkaError | None) -> None:
        broker.forget_share_partitions()
        broker.fetch_sessions.clear()
        done()

    controller.submit(DeleteTopics([(None, topic_id) for topic_id in image.topics_by_id]), deleted)


def _updates(levels: Mapping[str, int], wanted: Mapping[str, int]) -> list[FeatureUpdate]:
    updates = []
    for name in FEATURES:
        before, level = levels.get(name, 0), wanted.get(name, 0)
        if name != METADATA_VERSION and level != before:
            updates.append(FeatureUpdate(name, level, UPGRADE if level > before else SAFE_DOWNGRADE))
    return updates


def _configs_at_start(
    broker: Broker, resource: tuple[int, str], features: Mapping[str, int]
) -> list[tuple[str, str | None]]:
    """Returns what a new cluster has: nothing, or the one config that all brokers have to agree on."""
    if resource != (BROKER_RESOURCE, "") or not features.get(ELIGIBLE_LEADER_REPLICAS):
        return []
    return [(MIN_INSYNC_REPLICAS, str(broker.config.static(MIN_INSYNC_REPLICAS)))]
