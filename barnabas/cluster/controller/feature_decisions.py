"""Decides on the finalized feature levels of a cluster: upgrades, downgrades, and their records.

Knows nothing of requests, nor of what a level means. The rules are those of Apache Kafka's ``FeatureControlManager``,
and of its ``ConfigurationControlManager`` when eligible leader replicas are enabled.
"""

from collections.abc import Iterable

from barnabas.cluster.controller.commands.features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    UpdateFeatures,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.cluster.features import (
    CONTROLLER_REGISTRATION,
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    first_levels,
    loses_metadata,
    missing_need,
)
from barnabas.cluster.image.image import MetadataImage
from barnabas.config.dynamic import BROKER_RESOURCE
from barnabas.errors import InvalidUpdateVersion
from barnabas.wire.messages.metadata_records import ConfigRecord, FeatureLevelRecord, NoOpRecord


def bootstrap_records(levels: dict[str, int] | None = None) -> list[FeatureLevelRecord]:
    """Returns the records of ``bootstrap.checkpoint`` (``kafka-storage format``), by default with the newest levels."""
    found = first_levels({}) if levels is None else levels
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in found.items()]


def first_records(bootstrap: Iterable[object], min_insync_replicas: int) -> list[object]:
    """Returns the first records of a cluster: the bootstrap records (all feature levels first) and the cluster-wide
    ``min.insync.replicas`` if eligible leader replicas are enabled.
    """
    records = list(bootstrap)
    levels = {each.name: each.feature_level for each in records if isinstance(each, FeatureLevelRecord)}
    if levels.get(ELIGIBLE_LEADER_REPLICAS):
        records.append(for_all_brokers(min_insync_replicas))
    return records


def for_all_brokers(min_insync_replicas: int) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="", name=MIN_INSYNC_REPLICAS, value=str(min_insync_replicas)
    )


def update_features(command: UpdateFeatures, image: MetadataImage, around: Surroundings) -> Decision:
    """Changes all levels, or none. A change of ``kraft.version`` has no metadata record: the quorum records it.

    :raises InvalidUpdateVersion: the level of a feature is not valid
    """
    levels = {METADATA_VERSION: image.metadata_version, KRAFT_VERSION: around.kraft_version, **image.features}
    after = levels | {update.name: update.level for update in command.updates}
    records: list[object] = []
    raises_kraft = False
    for update in command.updates:
        before = levels.get(update.name, 0)
        if reason := refusal(update, before, after[METADATA_VERSION], around.settings["node.id"], image):
            raise InvalidUpdateVersion(
                f"The update failed for all features since the following feature had an error: {reason}"
            )
        if update.name == ELIGIBLE_LEADER_REPLICAS and update.level and not before:
            records = [*agreement(image, around), *records]
        if update.name == KRAFT_VERSION:
            raises_kraft = update.level > before
            records.append(NoOpRecord())
        else:
            records.append(FeatureLevelRecord(name=update.name, feature_level=update.level))
    if command.validate_only:
        return Decision([], None)
    return Decision(records, None, raises_kraft)


def refusal(
    update: FeatureUpdate, before: int, metadata_version: int, node_id: int, image: MetadataImage
) -> str | None:
    """Returns why the update is refused, in Apache Kafka's words; None if it is valid."""
    name, level, _ = update
    if reason := refused_level(update, before, metadata_version, node_id, image):
        return f"Invalid update version {level} for feature {name}. {reason}"
    if name == METADATA_VERSION and loses_metadata(before, level):
        return refused_downgrade(update, before)
    return None


def refused_level(
    update: FeatureUpdate, before: int, metadata_version: int, node_id: int, image: MetadataImage
) -> str | None:
    name, level, upgrade_type = update
    feature = SUPPORTED.get(name)
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if feature is None:
        return f"Local controller {node_id} does not support this feature." if level else f"Feature {name} not found."
    if not feature.first <= level <= feature.last:
        return f"Local controller {node_id} only supports versions {feature.first}-{feature.last}"
    if reason := unsupported_elsewhere(name, level, node_id, image):
        return reason
    if level < before and upgrade_type == UPGRADE:
        without = "without setting the upgrade type to either safe or unsafe downgrade"
        return f"Can't downgrade the version of this feature {without}."
    if level > before and upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    if name == KRAFT_VERSION and level < before:
        return "Can't downgrade the version of this feature."
    return missing_need(name, level, metadata_version)


def unsupported_elsewhere(name: str, level: int, node_id: int, image: MetadataImage) -> str | None:
    """Returns which other node does not support the level (``FeatureControlManager.reasonNotSupported``)."""
    nodes = [(f"Broker {each.id}", each.features) for each in image.brokers.values()]
    if image.metadata_version >= CONTROLLER_REGISTRATION:
        nodes += [(f"Controller {each.id}", each.features) for each in image.controllers.values() if each.id != node_id]
    for node, features in nodes:
        first, last = features.get(name, (0, 0))
        if not first <= level <= last:
            return f"{node} only supports versions {first}-{last}" if last else f"{node} does not support this feature."
    return None


def refused_downgrade(update: FeatureUpdate, before: int) -> str:
    """Returns why a downgrade that would lose metadata is refused, even an unsafe one, as in Apache Kafka."""
    reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    if update.upgrade_type == UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    return f"Unsupported {update.name} downgrade from {before} to {update.level}. {reason}"


def agreement(image: MetadataImage, around: Surroundings) -> list[ConfigRecord]:
    """Returns the records that set ``min.insync.replicas`` for the cluster, and remove it from single brokers."""
    records = []
    if MIN_INSYNC_REPLICAS not in image.configs_of(BROKER_RESOURCE, ""):
        records.append(for_all_brokers(around.settings.static(MIN_INSYNC_REPLICAS)))
    for (resource_type, name), configs in image.configs.items():
        if resource_type == BROKER_RESOURCE and name and MIN_INSYNC_REPLICAS in configs:
            records.append(
                ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=MIN_INSYNC_REPLICAS, value=None)
            )
    return records
