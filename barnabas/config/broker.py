"""The broker's effective settings: static configs, dynamic configs, and Kafka's defaults.

Knows nothing of files, environment or metadata: it gets texts by name. A :class:`BrokerConfig` is immutable.
"""

import logging
from collections.abc import Mapping
from typing import Any, Self

from barnabas.config import authorization, profile, roles
from barnabas.config.bounds import check_bounds
from barnabas.config.definition import ConfigDef
from barnabas.config.definitions import BROKER, FAMILY_OF, TOPIC
from barnabas.config.endpoints import (
    Endpoint,
    check_early_start,
    check_ports,
    parse_endpoints,
    parse_protocol_map,
)
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.topic import TopicConfig
from barnabas.config.validators import ConfigError, InvalidValue

logger = logging.getLogger(__name__)

_DEFAULTS: dict[str, Any] = {config.name: config.default for config in BROKER.values()}
_SINGLE_NODE_DEFAULTS: dict[str, Any] = {**_DEFAULTS, **profile.SINGLE_NODE}
_NOTHING: Mapping[str, str] = {}

LEAST_CLEANER_BUFFER = 1 << 20
"""The minimum of Apache Kafka."""


class BrokerConfig:
    """One broker's settings. ``config["num.partitions"]`` is the effective value, parsed.

    :param originals: the texts of static configs, including unknown ones
    :param cluster_overrides: the texts of dynamic configs of all brokers (KIP-226)
    :param broker_overrides: the texts of dynamic configs of this broker
    :param dev: whether the development profile is in effect
    :param single_node: whether the cluster has one node, which changes the defaults in :data:`profile.SINGLE_NODE`
    """

    __slots__ = (
        "_defaults",
        "_topic",
        "_topic_values",
        "_values",
        "broker_overrides",
        "cluster_overrides",
        "dev",
        "originals",
        "single_node",
    )

    def __init__(
        self,
        originals: Mapping[str, str],
        cluster_overrides: Mapping[str, str] = _NOTHING,
        broker_overrides: Mapping[str, str] = _NOTHING,
        *,
        dev: bool = False,
        single_node: bool = False,
    ) -> None:
        self.originals, self.dev, self.single_node = originals, dev, single_node
        self.cluster_overrides, self.broker_overrides = cluster_overrides, broker_overrides
        self._defaults = _SINGLE_NODE_DEFAULTS if single_node else _DEFAULTS
        self._values = self._defaults.copy()
        for name, text in originals.items():
            if name in BROKER:
                self._values[name] = BROKER[name].parse(text)
        for overrides in (cluster_overrides, broker_overrides):
            self._override(overrides)
        self._topic_values: dict[str, Any] | None = None
        self._topic: TopicConfig | None = None

    def _override(self, overrides: Mapping[str, str]) -> None:
        for name, text in overrides.items():
            if name not in BROKER:
                continue
            try:
                value = BROKER[name].parse_set(text)
            except ConfigError as error:
                # The value was valid when it was set, but by a version with other rules.
                logger.error("Ignored a config of this broker: %s", error)
                continue
            for relative in FAMILY_OF.get(name, ()):
                # A new value overrides an earlier value of a synonym.
                self._values[relative] = self._defaults[relative]
            self._values[name] = value

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, dev: bool = False) -> Self:
        """Returns the settings of a starting broker, and logs which properties have no effect.

        :param dev: whether the defaults are those of the development profile
        :raises ConfigError: a value is invalid
        """
        given = {name: text for name, text in properties.items() if text is not None}
        originals = profile.completed(given, dev=dev)
        config = cls(originals, dev=dev)
        config.check()
        for notice in profile.notices(given, config):
            logger.warning("%s", notice)
        return config

    def with_dynamic(self, cluster_overrides: Mapping[str, str], broker_overrides: Mapping[str, str]) -> Self:
        """Returns these settings with dynamic configs: the broker's override the cluster's."""
        return type(self)(
            self.originals, cluster_overrides, broker_overrides, dev=self.dev, single_node=self.single_node
        )

    def with_single_node(self, single_node: bool) -> Self:
        """Returns these settings for a cluster of one node, or of several."""
        if single_node == self.single_node:
            return self
        return type(self)(
            self.originals, self.cluster_overrides, self.broker_overrides, dev=self.dev, single_node=single_node
        )

    def __getitem__(self, name: str) -> Any:
        """Returns the effective value: bool, int, float, str, list of str, or None. :raises KeyError: unknown name"""
        return self._values[name]

    def default(self, name: str) -> Any:
        """Returns the default value. The default of a single node applies only if the config is not set."""
        return _DEFAULTS[name] if self.is_set(name) else self._defaults[name]

    def is_set(self, name: str) -> bool:
        """Returns whether a properties file, the environment, the command line or a dynamic config sets it."""
        return name in self.originals or name in self.cluster_overrides or name in self.broker_overrides

    def sets_any(self, suffix: str) -> bool:
        """Returns whether a config is set whose name has that suffix, such as that of any listener."""
        given = (self.originals, self.cluster_overrides, self.broker_overrides)
        return any(name.endswith(suffix) for each in given for name in each)

    def static(self, name: str) -> Any:
        """Returns the value without dynamic configs."""
        return type(self)(self.originals, dev=self.dev, single_node=self.single_node)[name]

    @property
    def node_id(self) -> int:
        """The node id."""
        return int(self["node.id"])

    @property
    def is_broker(self) -> bool:
        """Whether the node has the role of a broker."""
        return roles.BROKER in self["process.roles"]

    @property
    def is_controller(self) -> bool:
        """Whether the node has the role of a controller."""
        return roles.CONTROLLER in self["process.roles"]

    @property
    def is_lone(self) -> bool:
        """Whether the node has both roles, and is the only controller."""
        return self.is_broker and self.is_controller and not self.names_controllers

    @property
    def names_controllers(self) -> bool:
        """Whether there may be other controllers."""
        return len(self["controller.quorum.voters"]) > 1 or bool(self["controller.quorum.bootstrap.servers"])

    @property
    def log_dirs(self) -> list[str]:
        """The data directories: ``log.dirs``, by default ``log.dir``."""
        return list(self["log.dirs"] or self["log.dir"])

    @property
    def metadata_log_dir(self) -> str:
        """The directory of the metadata log: ``metadata.log.dir``, by default the first data directory."""
        return str(self["metadata.log.dir"] or self.log_dirs[0])

    @property
    def directories(self) -> list[str]:
        """The data directories, and the directory of the metadata log if it is another one."""
        return list(dict.fromkeys([*self.log_dirs, self.metadata_log_dir]))

    @property
    def listeners(self) -> tuple[Endpoint, ...]:
        """The listeners for clients. Those of the controller are in :attr:`controller_listeners`."""
        return tuple(endpoint for endpoint in self._endpoints("listeners") if not self._is_controllers(endpoint))

    @property
    def advertised_listeners(self) -> tuple[Endpoint, ...]:
        """The endpoints for clients; by default ``listeners``, whose hosts and ports may not be known yet."""
        if self["advertised.listeners"] is None:
            return self.listeners
        named = self._endpoints("advertised.listeners")
        return tuple(endpoint for endpoint in named if not self._is_controllers(endpoint))

    @property
    def controller_listeners(self) -> tuple[Endpoint, ...]:
        """The listeners of the controller; a single combined node may have none."""
        return tuple(endpoint for endpoint in self._endpoints("listeners") if self._is_controllers(endpoint))

    @property
    def advertised_controller_listeners(self) -> tuple[Endpoint, ...]:
        """The endpoints of the controller; by default its listeners, whose hosts and ports may not be known yet."""
        named = self._endpoints("advertised.listeners") if self["advertised.listeners"] else ()
        advertised = {endpoint.name: endpoint for endpoint in named}
        return tuple(advertised.get(endpoint.name, endpoint) for endpoint in self.controller_listeners)

    @property
    def controller_listener_name(self) -> str:
        """The name of the listener between controllers."""
        return str(self["controller.listener.names"][0]).upper()

    @property
    def controller_security_protocol(self) -> str:
        """The security protocol of the controllers' listener."""
        return self._protocols()[self.controller_listener_name]

    @property
    def inter_broker_listener_name(self) -> str:
        """The name of the listener between brokers."""
        return str(self["inter.broker.listener.name"] or self["security.inter.broker.protocol"]).upper()

    def security_protocol_of(self, listener_name: str) -> str:
        """Returns the security protocol of a listener, which may belong to other nodes.

        :raises ConfigError: ``listener.security.protocol.map`` does not have the listener
        """
        protocols = self._protocols()
        if listener_name not in protocols:
            rule = f"a list that has {listener_name}, too"
            raise ConfigError("listener.security.protocol.map", self["listener.security.protocol.map"], rule)
        return protocols[listener_name]

    @property
    def topic_values(self) -> Mapping[str, Any]:
        """The configs of a topic without own configs: the broker's values, or Kafka's defaults."""
        if self._topic_values is None:
            self._topic_values = {config.name: self._topic_value(config) for config in TOPIC.values()}
        return self._topic_values

    def _topic_value(self, config: ConfigDef) -> Any:
        for synonym in config.synonyms:
            value = self._values[synonym.name]
            if value is not None:
                return value if synonym.scale == 1 or value < 0 else value * synonym.scale
        return config.default

    def topic(self, overrides: Mapping[str, str] = _NOTHING) -> TopicConfig:
        """Returns the settings of a topic with these configs; unknown names are ignored."""
        if self._topic is None:
            self._topic = TopicConfig(**_topic_fields(self.topic_values))
        if not overrides:
            return self._topic
        values = {}
        for name, text in overrides.items():
            if name in TOPIC:
                try:
                    values[name] = TOPIC[name].parse_set(text)
                except ConfigError as error:
                    logger.error("Ignored a config of a topic: %s", error)
        if values.get("internal.segment.bytes") is not None:
            values["segment.bytes"] = values["internal.segment.bytes"]
        return self._topic._replace(**_topic_fields(values))

    def _endpoints(self, name: str) -> tuple[Endpoint, ...]:
        return parse_endpoints(name, self[name] or (), self._protocols())

    def _protocols(self) -> dict[str, str]:
        protocols = parse_protocol_map(self["listener.security.protocol.map"])
        for name in self["controller.listener.names"]:
            # A controller's listener that is not in the default map is PLAINTEXT, as in Kafka.
            protocols.setdefault(name.upper(), "PLAINTEXT")
        return protocols

    def _is_controllers(self, endpoint: Endpoint) -> bool:
        return endpoint.name in [name.upper() for name in self["controller.listener.names"]]

    def check(self) -> None:
        """Checks configs that depend on each other.

        :raises ConfigError: a listener or a time is invalid, or configs contradict each other
        """
        self._check_listeners()
        for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
            if self[name] == 0:
                raise InvalidValue(name, f"{name} must be unlimited (-1) or, greater than or equal to 1")
        for name, least in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
            if self[name] is not None and self[name] < least:
                raise InvalidValue(name, f"{name} must be greater than or equal to {least}")
        self._check_cleaner()
        check_bounds(self)
        authorization.check_class(self["authorizer.class.name"])
        elsewhere = sorted(set(self["cordoned.log.dirs"]) - {*self.log_dirs, "*"})
        if elsewhere:
            text = f"must be present in log.dirs or log.dir. Missing entries : {','.join(elsewhere)}"
            raise InvalidValue("cordoned.log.dirs", f"All entries in cordoned.log.dirs {text}")
        if self["broker.id"] != self["node.id"]:
            raise InvalidValue("broker.id", "You must set `node.id` to the same value as `broker.id`.")

    def _check_cleaner(self) -> None:
        threads, size = self["log.cleaner.threads"], self["log.cleaner.dedupe.buffer.size"]
        if threads < 1:
            raise ConfigError("log.cleaner.threads", str(threads), "at least 1")
        if size // threads <= LEAST_CLEANER_BUFFER:
            name = "log.cleaner.dedupe.buffer.size"
            raise InvalidValue(name, f"{name} must be at least 1MB per cleaner thread.")

    def _check_listeners(self) -> None:
        text = ",".join(self["listeners"])
        check_ports(self._endpoints("listeners"), text)
        roles.check_roles(self, [endpoint.name for endpoint in self._endpoints("listeners")])
        for endpoint in (*self.listeners, *self.controller_listeners):
            ListenerConfigs(self, endpoint.name).check()
        advertised = ",".join(map(str, self.advertised_listeners))
        names = {endpoint.name for endpoint in self.listeners}
        for endpoint in self.advertised_listeners:
            if endpoint.name not in names:
                raise ConfigError("advertised.listeners", advertised, f"of names in listeners: {', '.join(names)}")
            if endpoint.host in ("0.0.0.0", "::"):
                rule = f"an address that clients can reach; set advertised.listeners beside {endpoint}"
                raise ConfigError("advertised.listeners", advertised, rule)
        check_early_start(self, {*names, *(name.upper() for name in self["controller.listener.names"])})
        name = self["inter.broker.listener.name"]
        if name is not None and "security.inter.broker.protocol" in self.originals:
            text = "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            raise InvalidValue("inter.broker.listener.name", text)
        if (
            self.is_broker
            and self["inter.broker.listener.name"] is not None
            and self.inter_broker_listener_name not in names
        ):
            name = self["inter.broker.listener.name"]
            raise ConfigError("inter.broker.listener.name", name, f"one of listeners: {', '.join(names)}")


def _topic_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values by the fields of :class:`TopicConfig`; values without a field are left out."""
    fields = {
        name.replace(".", "_"): tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    if "cleanup_policy" in fields:
        fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    return {name: value for name, value in fields.items() if name in TopicConfig._fields}
