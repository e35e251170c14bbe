"""Validates dynamic configs, for each type of resource (KIP-226).

Knows nothing of requests, nor of where configs are stored. The rules, errors and messages are those of Kafka's
``DynamicBrokerConfig``, ``LogConfig``, ``GroupConfig`` and ``ClientMetricsConfigs``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.config.bounds import BOUNDED, BOUNDS
from barnabas.config.broker import BrokerConfig
from barnabas.config.definition import LIST, PER_BROKER, READ_ONLY, ConfigDef
from barnabas.config.definitions import BROKER, TOPIC, of_client_metrics, of_groups
from barnabas.config.listener_configs import declaration_of
from barnabas.config.validators import ConfigError, InvalidValue
from barnabas.errors import InvalidConfig, InvalidRequest

#: The types of resources with configs (``ConfigResource.Type``).
TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = RESOURCES = 2, 4, 8, 16, 32

#: Configs with a listener's prefix that may be set for the whole cluster.
_CLUSTER_WIDE_OF_LISTENERS = ("num.network.threads", "max.connections", "max.connection.creation.rate")
#: Keys and certificates, which can only be changed with a listener's prefix.
_BY_LISTENER = frozenset(
    name for name in BROKER if name.startswith(("ssl.keystore.", "ssl.truststore.")) or name == "ssl.key.password"
)
#: Thread counts: a change may at most double or halve them.
_THREADS = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)
#: The attributes of clients that a subscription can match (KIP-714).
_MATCHABLE = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_MIN_INTERVAL_MS, _MAX_INTERVAL_MS = 100, 3_600_000
_NOT_DYNAMIC = "Cannot update these configs dynamically"
_NOT_BY_LISTENER = "These security configs can be dynamically updated only per-listener using the listener prefix"
_NOT_FOR_ALL = "Cannot update these configs at default cluster level, broker id must be specified"
#: A node id is an int32.
_MAX_DIGITS = 10


def is_known(kind: int, name: str) -> bool:
    """Returns whether a resource of this type has such a config. A broker's may be those of its listeners and plugins.

    Apache Kafka's ``DefaultSupportedConfigChecker``.
    """
    if kind == TOPIC_RESOURCE:
        return name in TOPIC
    if kind == GROUP_RESOURCE:
        return name in of_groups()
    return kind != CLIENT_METRICS_RESOURCE or name in of_client_metrics()


def check_node_id(
    name: str,
    node_id: int,
    *,
    no_number: str = "Node id must be an integer, but it is: {name}",
    unexpected: str = "Unexpected broker id, expected {node_id}, but received {name}",
) -> None:
    """Checks that the name of a broker's resource is this node's id.

    :param no_number: the message if the name is not a number
    :param unexpected: the message if it is the id of another node
    :raises InvalidRequest: the name is not a number, or the id of another node
    """
    digits = name[1:] if name[:1] in ("+", "-") else name
    if not (digits.isdecimal() and len(digits) <= _MAX_DIGITS):
        raise InvalidRequest(no_number.format(name=name))
    if int(name) != node_id:
        raise InvalidRequest(unexpected.format(name=name, node_id=node_id))


def validate_topic_configs(overrides: Mapping[str, str], config: BrokerConfig | None = None) -> None:
    """Checks a topic's configs, with the settings of the broker.

    :raises InvalidConfig: a config is unknown, a value is invalid, or two values contradict each other
    """
    config = config or BrokerConfig({})
    values = _parsed(TOPIC, overrides, "topic")
    topic = config.topic(overrides)
    if values.get("remote.storage.enable"):
        raise InvalidConfig(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if topic.min_compaction_lag_ms > topic.max_compaction_lag_ms:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({topic.min_compaction_lag_ms}) > "
            f"max.compaction.lag.ms ({topic.max_compaction_lag_ms})"
        )


def validate_group_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Checks a group's configs.

    :raises InvalidConfig: a config is unknown, or a value is invalid or outside the broker's bounds
    """
    values = _parsed(of_groups(), overrides, "group")
    for name, (least, most) in BOUNDS.items():
        value = values.get(name)
        if value is None:
            continue
        if least is not None and value < config[least]:
            raise InvalidConfig(f"{name} must be greater than or equal to {least}")
        if value > config[most]:
            raise InvalidConfig(f"{name} must be less than or equal to {most}")
    for kind in BOUNDED:
        interval, timeout = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        of_interval, of_timeout = (values.get(name, config[f"group.{name}"]) for name in (interval, timeout))
        if of_interval >= of_timeout and (interval in values or timeout in values):
            raise InvalidConfig(f"{timeout} must be greater than {interval}")


def validate_client_metrics_configs(overrides: Mapping[str, str]) -> None:
    """Checks the configs of a client metrics subscription.

    :raises InvalidRequest: a config is unknown, or the interval is out of bounds
    :raises InvalidConfig: a value is invalid
    """
    definitions = of_client_metrics()
    for name in sorted(overrides):
        if name not in definitions:
            raise InvalidRequest(f"Unknown client metrics configuration: {name}")
    if "interval.ms" in overrides:
        interval = _parse(definitions["interval.ms"], overrides["interval.ms"])
        if not _MIN_INTERVAL_MS <= interval <= _MAX_INTERVAL_MS:
            raise InvalidRequest(
                f"Invalid value {interval} for interval.ms, "
                f"interval must be between {_MIN_INTERVAL_MS} and {_MAX_INTERVAL_MS} (1 hour)"
            )
    _parse(definitions["metrics"], overrides.get("metrics", ""))
    for item in _parse(definitions["match"], overrides.get("match", "")):
        _check_match(item)


def _check_match(item: str) -> None:
    import re

    attribute, _, pattern = (part.strip() for part in item.partition("="))
    try:
        re.compile(pattern)
    except re.error:
        pattern = ""
    # Kafka splits at each "=", so it accepts neither a second one nor an empty pattern.
    if not pattern or "=" in pattern or attribute not in _MATCHABLE:
        raise InvalidConfig(f"Illegal client matching pattern: {item}")


def validate_broker_configs(config: BrokerConfig, overrides: Mapping[str, str], *, per_broker: bool) -> None:
    """Checks all dynamic configs of this broker (``per_broker``), or of all brokers.

    Unknown names are accepted, as in Kafka: they may belong to a plug-in.

    :param config: the current settings
    :raises InvalidRequest: a config is not dynamic, or not cluster-wide, or a value is invalid
    """
    known = {name: definition for name in overrides if (definition := declaration_of(name)) is not None}
    _refuse(_NOT_DYNAMIC, [name for name, each in known.items() if each.scope == READ_ONLY and each.name == name])
    _refuse(_NOT_BY_LISTENER, [name for name in known if name in _BY_LISTENER])
    for name, definition in known.items():
        try:
            definition.parse_set(overrides[name])
        except ConfigError as error:
            raise InvalidRequest(str(error)) from None
    if not per_broker:
        _refuse(_NOT_FOR_ALL, [name for name, each in known.items() if not _is_cluster_wide(name, each)])
    layers = (config.cluster_overrides, overrides) if per_broker else (overrides, config.broker_overrides)
    _check_together(config, config.with_dynamic(*layers))


def _refuse(why: str, names: list[str]) -> None:
    if names:
        raise InvalidRequest(f"{why}: [{', '.join(names)}]")


def _is_cluster_wide(name: str, definition: ConfigDef) -> bool:
    if definition.name != name:
        return definition.name in _CLUSTER_WIDE_OF_LISTENERS
    return definition.scope != PER_BROKER


def _check_together(current: BrokerConfig, proposed: BrokerConfig) -> None:
    """Checks rules on several values, or on the current value."""
    try:
        proposed.check()
    except InvalidValue as error:
        raise InvalidRequest(f"requirement failed: {error}") from None
    except ConfigError as error:
        raise InvalidRequest(str(error)) from None
    for name in _THREADS:
        if proposed[name] != current[name]:
            _check_threads(name, current[name], proposed[name])
    if proposed["max.connections"] < 1:
        raise _invalid_dynamic(f"Invalid max.connections {proposed['max.connections']}")
    retention = proposed.topic().retention_ms
    local = proposed["log.local.retention.ms"]
    if retention >= 0 and local > retention:
        text = f"Value must not be more than log.retention.ms property value: {retention}"
        raise _invalid_dynamic(f"Invalid value {local} for configuration log.local.retention.ms: {text}")


def _check_threads(name: str, now: int, then: int) -> None:
    if name == "log.cleaner.threads":
        if then > 2 * now:
            raise _invalid_dynamic(
                f"Log cleaner threads cannot be increased to more than double the current value {now}"
            )
        if then < now // 2:
            raise _invalid_dynamic(f"Log cleaner threads cannot be reduced to less than half the current value {now}")
        return
    failed = f"Dynamic thread count update validation failed for {name}={then}, value should"
    if then < 1:
        raise _invalid_dynamic(f"{failed} be at least 1")
    if then < now // 2:
        raise _invalid_dynamic(f"{failed} be at least half the current value {now}")
    if then > 2 * now:
        raise _invalid_dynamic(f"{failed} not be greater than double the current value {now}")


def _invalid_dynamic(text: str) -> InvalidRequest:
    """Returns the error of a change that Kafka refuses when it applies it: the message has the exception's class."""
    return InvalidRequest(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {text} "
        "for configuration Invalid dynamic configuration"
    )


def _parsed(definitions: Mapping[str, ConfigDef], overrides: Mapping[str, str], kind: str) -> dict[str, Any]:
    for name in sorted(overrides):
        if name not in definitions:
            raise InvalidConfig(f"Unknown {kind} config name: {name}")
    return {name: _parse(each, overrides[name]) for name, each in definitions.items() if name in overrides}


def _parse(definition: ConfigDef, text: str) -> Any:
    try:
        return definition.parse_set(text)
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None


class ConfigRules:
    """The rules for changed configs, for the controller.

    A resource is its type and its name; a broker's name is its id, or empty for all brokers.

    :param current: returns the broker's current settings
    :param check_services: raises a ConfigError if a service of this broker does not support the settings
    """

    def __init__(
        self,
        current: Callable[[], BrokerConfig],
        check_services: Callable[[BrokerConfig], object] = lambda proposed: None,
    ) -> None:
        self._current = current
        self._check_services = check_services

    def list_of(self, resource: tuple[int, str], name: str) -> list[str] | None:
        """Returns Kafka's default of a list, to which APPEND and SUBTRACT apply; None for other configs.

        :raises InvalidConfig: the broker has no such config
        """
        kind = resource[0]
        # Kafka has no schema of groups and subscriptions here, so none of their configs is a list.
        definition = TOPIC.get(name) if kind == TOPIC_RESOURCE else None
        if kind == BROKER_RESOURCE:
            definition = BROKER.get(name)
            if definition is None:
                raise InvalidConfig(f"Unknown config name: {name}")
        if definition is None or definition.type is not LIST:
            return None
        return list(definition.default or ())

    def check(self, resource: tuple[int, str], configs: Mapping[str, str]) -> None:
        """Checks the complete configs of a resource.

        :raises KafkaError: a config is unknown, or a value is invalid
        """
        kind, name = resource
        config = self._current()
        if kind == TOPIC_RESOURCE:
            validate_topic_configs(configs, config)
        elif kind == BROKER_RESOURCE:
            if not config.is_broker or (name and int(name) != config.node_id):
                return  # checked by the broker that forwarded the request
            validate_broker_configs(config, configs, per_broker=bool(name))
            if name:
                try:
                    self._check_services(config.with_dynamic(config.cluster_overrides, configs))
                except ConfigError as error:
                    raise _invalid_dynamic(str(error)) from None
        elif kind == GROUP_RESOURCE:
            validate_group_configs(config, configs)
        elif kind == CLIENT_METRICS_RESOURCE:
            validate_client_metrics_configs(configs)
        else:
            raise InvalidRequest(f"Unknown resource type {kind}")
