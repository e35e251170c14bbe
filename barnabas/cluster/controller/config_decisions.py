"""Decides on the configs in the metadata log: those of topics, brokers, client metrics and groups.

Knows nothing of what a config means: rules that are passed in define the valid values. The errors are those of Apache
Kafka's ``ConfigAdminManager`` and ``ConfigurationControlManager``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from barnabas.cluster.controller.commands.configs import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    AlterConfigs,
    AlteredConfigs,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.cluster.features import CORDONED_DIRECTORIES, ELIGIBLE_LEADER_REPLICAS, METADATA_VERSIONS
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.topic_names import check_topic_name
from barnabas.config.dynamic import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from barnabas.errors import InvalidConfig, InvalidRequest, KafkaError, UnknownServerError, UnknownTopicOrPartition
from barnabas.wire.messages.metadata_records import ClearElrRecord, ConfigRecord

CORDONED = "cordoned.log.dirs"
KINDS = (TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)
"""The types of resources with configs."""

Requested = TypeVar("Requested", ConfigChange, tuple[str, str | None])
Configs = Mapping[str, str]


def incremental_alter_configs(command: IncrementalAlterConfigs, image: MetadataImage, around: Surroundings) -> Decision:
    """Changes single configs, and keeps the others (KIP-339)."""

    def wanted(resource: ConfigResource, changes: Sequence[ConfigChange], before: Configs) -> dict[str, str]:
        check_keys([change.name for change in changes])
        check_values(change.name for change in changes if change.operation != DELETE and change.value is None)
        after = dict(before)
        for change in changes:
            value = changed(resource, change, before, around)
            if value is None:
                after.pop(change.name, None)
            else:
                after[change.name] = value
        return after

    return altered(command.resources, wanted, image, around, validate_only=command.validate_only)


def alter_configs(command: AlterConfigs, image: MetadataImage, around: Surroundings) -> Decision:
    """Replaces the configs of each resource."""

    def wanted(resource: ConfigResource, configs: Sequence[tuple[str, str | None]], before: Configs) -> dict[str, str]:
        check_keys([name for name, _ in configs])
        check_values(name for name, value in configs if value is None)
        return {name: value for name, value in configs if value is not None}

    return altered(command.resources, wanted, image, around, validate_only=command.validate_only)


def altered(
    resources: Sequence[tuple[ConfigResource, Sequence[Requested]]],
    wanted: Callable[[ConfigResource, Sequence[Requested], Configs], dict[str, str]],
    image: MetadataImage,
    around: Surroundings,
    *,
    validate_only: bool,
) -> Decision:
    """Decides on each resource independently: returns the records for the new configs that ``wanted`` returns."""
    times = Counter(resource for resource, _ in resources)
    records: list[object] = []
    results = []
    for resource, requested in resources:
        try:
            if times[resource] > 1:
                raise InvalidRequest("Each resource must appear at most once.")
            if resource.type not in KINDS:
                raise InvalidRequest(f"Unknown resource type {resource.type}")
            before = image.configs_of(*resource)
            after = wanted(resource, requested, before)
            check_resource(resource)
            around.rules.check(resource, after)
            if resource.type == BROKER_RESOURCE and image.features.get(ELIGIBLE_LEADER_REPLICAS):
                check_min_insync_replicas(resource, [each[0] for each in requested], before, after)
            if resource.type == BROKER_RESOURCE:
                check_cordoned(before, after, image)
            if resource.type == TOPIC_RESOURCE and resource.name not in image.topics_by_name:
                raise UnknownTopicOrPartition(f"The topic '{resource.name}' does not exist.")
        except KafkaError as error:
            results.append(AlteredConfigs(resource, error))
        else:
            records += changes(resource, before, after, image)
            results.append(AlteredConfigs(resource))
    return Decision([] if validate_only else records, results)


# ---------------------------------------------------------------- checks of the requested changes


def check_resource(resource: ConfigResource) -> None:
    """Checks the name of a resource.

    :raises KafkaError: the name is not valid for this type
    """
    if resource.type == TOPIC_RESOURCE:
        if not resource.name:
            raise InvalidRequest("Default topic resources are not allowed.")
        check_topic_name(resource.name)
    elif resource.type == BROKER_RESOURCE:
        if resource.name:
            check_broker_name(resource.name)
    elif resource.type == GROUP_RESOURCE:
        if not resource.name:
            raise InvalidRequest("Default group resources are not allowed.")
    elif resource.type == CLIENT_METRICS_RESOURCE and not resource.name:
        raise InvalidRequest("Subscription name can't be empty")


def check_broker_name(name: str) -> None:
    """Checks that the name is a node id (``ControllerConfigurationValidator.validateBrokerName``).

    :raises InvalidRequest: the name is no node id
    """
    if not re.fullmatch(r"[+-]?\d{1,10}", name):
        raise InvalidRequest("Unable to parse broker name as a base 10 number.")
    if int(name) < 0:
        raise InvalidRequest("Invalid negative broker ID.")


def check_keys(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise InvalidRequest("Error due to duplicate config keys")


def check_values(without_value: Iterable[str]) -> None:
    names = ", ".join(without_value)
    if names:
        raise InvalidRequest(f"Null value not supported for : {names}")


def check_min_insync_replicas(resource: ConfigResource, names: Sequence[str], before: Configs, after: Configs) -> None:
    """Checks that all brokers have the same ``min.insync.replicas`` while ELRs are enabled (KIP-966).

    :raises InvalidConfig: the values would differ
    """
    if resource.name and MIN_INSYNC_REPLICAS in names:
        raise InvalidConfig(f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled.")
    if not resource.name and MIN_INSYNC_REPLICAS in before and MIN_INSYNC_REPLICAS not in after:
        raise InvalidConfig(f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled.")


def check_cordoned(before: Configs, after: Configs, image: MetadataImage) -> None:
    """Checks that the metadata.version can record cordoned directories.

    :raises InvalidConfig: the metadata.version is too low
    """
    is_news = CORDONED in after and after[CORDONED] != before.get(CORDONED)
    if is_news and image.metadata_version < CORDONED_DIRECTORIES:
        name = METADATA_VERSIONS[CORDONED_DIRECTORIES]
        raise InvalidConfig(
            f"The {CORDONED} configuration value cannot be set because it requires metadata.version >= {name}"
        )


# ---------------------------------------------------------------- the new configs


def changed(resource: ConfigResource, change: ConfigChange, before: Configs, around: Surroundings) -> str | None:
    """Returns the value of a config after one operation; None if it is removed.

    :raises KafkaError: the operation is unknown, or the config is not a list
    """
    if change.operation == SET:
        return change.value
    if change.operation == DELETE:
        return None
    if change.operation not in (APPEND, SUBTRACT):
        raise UnknownServerError
    items = around.rules.list_of(resource, change.name)
    if items is None:
        word = "APPEND" if change.operation == APPEND else "SUBTRACT"
        if resource.type == BROKER_RESOURCE:
            raise InvalidConfig(f"Config value {word.lower()} is not allowed for config key: {change.name}")
        raise InvalidConfig(f"Can't {word} to key {change.name} because its type is not LIST.")
    if change.name in before:
        items = listed(before[change.name])
    given = listed(change.value or "")
    if change.operation == APPEND:
        return ",".join(
            [*items, *(item for item in dict.fromkeys(given) if item not in items)] if given else [*items, ""]
        )
    return ",".join(item for item in items if item not in given)


def listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text else []


def changes(resource: ConfigResource, before: Configs, after: Configs, image: MetadataImage) -> list[object]:
    """Returns the records that change the old configs to the new ones."""
    records: list[object] = []
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            records.append(
                ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=after.get(name))
            )
            if name == MIN_INSYNC_REPLICAS and image.features.get(ELIGIBLE_LEADER_REPLICAS):
                if resource.type == TOPIC_RESOURCE:
                    records.append(ClearElrRecord(topic_name=resource.name))
                elif resource.type == BROKER_RESOURCE and not resource.name:
                    records.append(ClearElrRecord(topic_name=""))
    return records
