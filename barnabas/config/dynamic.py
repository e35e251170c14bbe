"""What may be set while the broker runs, for each kind of resource, and what is wrong with the rest (KIP-226).

Knows nothing of requests, nor of where changes are kept. What is refused, and with which error, is as Kafka's
``DynamicBrokerConfig``, ``LogConfig``, ``GroupConfig`` and ``ClientMetricsConfigs`` refuse it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.config.bounds import BOUNDED, BOUNDS
from barnabas.config.broker import BrokerConfig
from barnabas.config.definition import LIST, PER_BROKER, READ_ONLY, ConfigDef, ConfigError
from barnabas.config.definitions import BROKER, TOPIC, of_client_metrics, of_groups
from barnabas.errors import InvalidConfig, InvalidRequest

#: Kinds of resources that have configs (``ConfigResource.Type``).
TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32

_LISTENER_PREFIX = "listener.name."
#: Configs that a listener's prefix and a SASL mechanism's can stand before.
_OF_MECHANISMS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
#: What a listener may be given by its prefix for the whole cluster.
_CLUSTER_WIDE_OF_LISTENERS = ("num.network.threads", "max.connections", "max.connection.creation.rate")
#: Keys and certificates change by a listener's prefix only.
_BY_LISTENER = frozenset(
    name for name in BROKER if name.startswith(("ssl.keystore.", "ssl.truststore.")) or name == "ssl.key.password"
)
#: Numbers of threads: a change may double or halve what there is.
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
#: What a client's metrics can be matched by (KIP-714).
_MATCHABLE = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_MIN_INTERVAL_MS, _MAX_INTERVAL_MS = 100, 3_600_000


def declaration_of(name: str) -> ConfigDef | None:
    """The declaration behind a broker config's name, which may have a listener's prefix; None for unknown names."""
    if name in BROKER or not name.startswith(_LISTENER_PREFIX):
        return BROKER.get(name)
    bare = name[len(_LISTENER_PREFIX) :].partition(".")[2]
    for of_mechanism in _OF_MECHANISMS:
        if bare.endswith(of_mechanism):
            return BROKER[of_mechanism]
    return BROKER.get(bare)


def check_node_id(name: str, node_id: int) -> None:
    """Whether the name of a broker's resource is this node's id.

    Raises:
        InvalidRequest: it is no number, or another's.
    """
    digits = name[1:] if name[:1] in ("+", "-") else name
    if not digits.isdecimal():
        raise InvalidRequest(f"A broker is named by its id, which {name!r} is not")
    if int(name) != node_id:
        raise InvalidRequest(f"This is broker {node_id}: ask broker {name} itself")


def validate_topic_configs(overrides: Mapping[str, str], config: BrokerConfig | None = None) -> None:
    """Whether a topic may have these configs, on a broker of these settings.

    Raises:
        InvalidConfig: a name that topics do not have, a value that cannot be, or two that contradict one another.
    """
    config = config or BrokerConfig({})
    values = _parsed(TOPIC, overrides, "A topic has no config")
    topic = config.topic(overrides)
    if values.get("remote.storage.enable"):
        raise InvalidConfig("remote.storage.enable cannot be true: this broker has no remote storage")
    if topic.min_compaction_lag_ms > topic.max_compaction_lag_ms:
        raise InvalidConfig(
            f"min.compaction.lag.ms is {topic.min_compaction_lag_ms}, more than max.compaction.lag.ms, "
            f"which is {topic.max_compaction_lag_ms}"
        )


def validate_group_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Whether a group may have these configs.

    Raises:
        InvalidConfig: a name that groups do not have, or a value that cannot be or that the broker sets bounds to.
    """
    values = _parsed(of_groups(), overrides, "A group has no config")
    for name, value in values.items():
        least, most = BOUNDS.get(name, (None, None))
        if least is not None and value < config[least]:
            raise InvalidConfig(f"{name} is {value}, less than {least}, which is {config[least]}")
        if most is not None and value > config[most]:
            raise InvalidConfig(f"{name} is {value}, more than {most}, which is {config[most]}")
    for kind in BOUNDED:
        interval, timeout = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        of_interval, of_timeout = (values.get(name, config[f"group.{name}"]) for name in (interval, timeout))
        if of_interval >= of_timeout and (interval in values or timeout in values):
            raise InvalidConfig(f"{interval} is {of_interval}, but must be less than {timeout}, which is {of_timeout}")


def validate_client_metrics_configs(overrides: Mapping[str, str]) -> None:
    """Whether a subscription to clients' metrics may have these configs.

    Raises:
        InvalidRequest: a name that subscriptions do not have, or an interval out of bounds.
        InvalidConfig: a value that cannot be.
    """
    definitions = of_client_metrics()
    for name in overrides:
        if name not in definitions:
            raise InvalidRequest(f"A subscription to metrics has no config {name}")
    if "interval.ms" in overrides:
        interval = _parse(definitions["interval.ms"], overrides["interval.ms"])
        if not _MIN_INTERVAL_MS <= interval <= _MAX_INTERVAL_MS:
            rule = f"between {_MIN_INTERVAL_MS} and {_MAX_INTERVAL_MS}"
            raise InvalidRequest(str(ConfigError("interval.ms", overrides["interval.ms"], rule)))
    for item in definitions["match"].parse_set(overrides.get("match", "")):
        _check_match(item)


def _check_match(item: str) -> None:
    import re

    attribute, equals, pattern = (part.strip() for part in item.partition("="))
    try:
        re.compile(pattern)
    except re.error:
        equals = ""
    if not equals or attribute not in _MATCHABLE:
        rule = f"attribute=pattern, with an attribute of {', '.join(_MATCHABLE)}"
        raise InvalidConfig(str(ConfigError("match", item, rule)))


def validate_broker_configs(config: BrokerConfig, overrides: Mapping[str, str], *, per_broker: bool) -> None:
    """Whether a running broker (``per_broker``), or all of them, may have these configs set, and no others.

    ``config`` is what is in effect now. Unknown names are taken, as Kafka takes them: a plug-in may know them.

    Raises:
        InvalidRequest: a config that cannot change while the broker runs, or not for all, or a value that cannot be.
    """
    for name, text in overrides.items():
        definition = declaration_of(name)
        if definition is None:
            continue
        prefixed = definition.name != name
        if definition.scope == READ_ONLY and not prefixed:
            raise InvalidRequest(f"{name} cannot be changed while the broker runs")
        if name in _BY_LISTENER:
            raise InvalidRequest(f"{name} can only be changed for one listener, by the prefix listener.name.<name>.")
        cluster_wide = definition.name in _CLUSTER_WIDE_OF_LISTENERS if prefixed else definition.scope != PER_BROKER
        if not per_broker and not cluster_wide:
            raise InvalidRequest(f"{name} cannot be changed for all brokers at once, only for one")
        try:
            definition.parse(text)
        except ConfigError as error:
            raise InvalidRequest(str(error)) from None
    layers = (config.cluster_overrides, overrides) if per_broker else (overrides, config.broker_overrides)
    _check_together(config, config.with_dynamic(*layers))


def _check_together(current: BrokerConfig, proposed: BrokerConfig) -> None:
    """What one value alone cannot tell."""
    try:
        proposed.check()
    except ConfigError as error:
        raise InvalidRequest(str(error)) from None
    for name in _THREADS:
        now, then = current[name], proposed[name]
        if then != now and (then > 2 * now or then < now // 2 or then < 1):
            raise InvalidRequest(f"{name} is {now} and may be doubled or halved at a time, but not become {then}")
    retention = proposed.topic().retention_ms
    local = proposed["log.local.retention.ms"]
    if retention >= 0 and local > retention:
        raise InvalidRequest(f"log.local.retention.ms is {local}, more than log.retention.ms, which is {retention}")


def _parsed(definitions: Mapping[str, ConfigDef], overrides: Mapping[str, str], unknown: str) -> dict[str, Any]:
    for name in overrides:
        if name not in definitions:
            raise InvalidConfig(f"{unknown} {name}")
    return {name: _parse(definitions[name], text) for name, text in overrides.items()}


def _parse(definition: ConfigDef, text: str) -> Any:
    try:
        return definition.parse_set(text)
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None


class ConfigRules:
    """What configs may be set to, for whoever decides on changes; ``current`` gives the broker's settings of now.

    A resource is its kind and its name; a broker's name is its id, or nothing, which is all brokers.
    """

    def __init__(self, current: Callable[[], BrokerConfig]) -> None:
        self._current = current

    def list_of(self, resource: tuple[int, str], name: str) -> list[str] | None:
        """Kafka's default of the config, if it is a list: what APPEND and SUBTRACT go by where nothing is set."""
        kind = resource[0]
        # Kafka has no schema of subscriptions there, and takes none of their configs for a list.
        definition = TOPIC.get(name) if kind == TOPIC_RESOURCE else None
        if kind == BROKER_RESOURCE:
            definition = BROKER.get(name)
        if definition is None or definition.type is not LIST:
            return None
        return list(definition.default or ())

    def check(self, resource: tuple[int, str], configs: Mapping[str, str]) -> None:
        """Whether the resource may have these configs set, and no others.

        Raises:
            KafkaError: it may not.
        """
        kind, name = resource
        config = self._current()
        if kind == TOPIC_RESOURCE:
            validate_topic_configs(configs, config)
        elif kind == BROKER_RESOURCE:
            validate_broker_configs(config, configs, per_broker=bool(name))
        elif kind == GROUP_RESOURCE:
            validate_group_configs(config, configs)
        elif kind == CLIENT_METRICS_RESOURCE:
            validate_client_metrics_configs(configs)
        else:
            raise InvalidRequest(f"Resources of kind {kind} have no configs that can be changed")
