"""The settings of one listener: configs with the prefix ``listener.name.<name>.`` override those of all listeners.

Knows nothing of what the settings mean. Prefixes and fallbacks are those of Kafka's ``ListenerName``,
``AbstractConfig.valuesWithPrefixOverride`` and ``SaslChannelBuilder`` (KIP-103, KIP-226).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from barnabas.config.definition import ConfigDef
from barnabas.config.definitions import BROKER
from barnabas.config.settings import Settings

PREFIX = "listener.name."

#: Configs that may have the prefix of a listener and a SASL mechanism.
OF_MECHANISMS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
    "sasl.server.max.receive.size",
)
#: Those that fall back to the listener's value. The others exist only with the mechanism's prefix.
_WITH_FALLBACK = ("connections.max.reauth.ms", "sasl.server.max.receive.size")


class BrokerSettings(Settings, Protocol):
    """The broker's settings, with their texts (:class:`barnabas.config.broker.BrokerConfig`)."""

    originals: Mapping[str, str]
    cluster_overrides: Mapping[str, str]
    broker_overrides: Mapping[str, str]


def prefix_of(listener_name: str) -> str:
    """Returns the prefix of the listener's configs."""
    return f"{PREFIX}{listener_name.lower()}."


def declaration_of(name: str) -> ConfigDef | None:
    """Returns the declaration of a broker's config, whose name may have a listener's prefix; None for unknown names."""
    if name in BROKER or not name.startswith(PREFIX):
        return BROKER.get(name)
    bare = name[len(PREFIX) :].partition(".")[2]
    for of_mechanism in OF_MECHANISMS:
        if bare.endswith(of_mechanism):
            return BROKER[of_mechanism]
    return BROKER.get(bare)


class ListenerConfigs:
    """One listener's settings, parsed.

    It is immutable: a change of the broker's settings requires a new one.

    >>> from barnabas.config import BrokerConfig
    >>> settings = BrokerConfig({"ssl.client.auth": "none", "listener.name.inside.ssl.client.auth": "required"})
    >>> ListenerConfigs(settings, "INSIDE")["ssl.client.auth"], ListenerConfigs(settings, "OUTSIDE")["ssl.client.auth"]
    ('required', 'none')
    """

    __slots__ = ("_prefix", "_settings", "listener_name")

    def __init__(self, settings: BrokerSettings, listener_name: str) -> None:
        self.listener_name = listener_name
        self._settings = settings
        self._prefix = prefix_of(listener_name)

    def __getitem__(self, name: str) -> Any:
        """Returns the listener's own value, or that of all listeners.

        :raises KeyError: the config is unknown
        :raises ConfigError: the listener's own value is invalid
        """
        text = self._own(name)
        return self._settings[name] if text is None else BROKER[name].parse_set(text)

    def of_mechanism(self, mechanism: str, name: str) -> Any:
        """Returns the value of a config for one SASL mechanism on this listener.

        As in Kafka, ``connections.max.reauth.ms`` and ``sasl.server.max.receive.size`` fall back to the listener's
        value. The rest (``sasl.jaas.config``, the classes) is None without the mechanism's prefix.

        :raises ConfigError: the value is invalid
        """
        text = self._own(f"{mechanism.lower()}.{name}")
        if text is not None:
            return BROKER[name].parse_set(text)
        return self[name] if name in _WITH_FALLBACK else None

    def is_own(self, name: str) -> bool:
        """Returns whether the listener has an own value of the config, whose name may have a mechanism's prefix."""
        return self._own(name) is not None

    def own(self) -> Iterator[tuple[str, str]]:
        """Yields the names, without the prefix, and the texts of the listener's own configs."""
        layers = (self._settings.originals, self._settings.cluster_overrides, self._settings.broker_overrides)
        merged = {name: text for layer in layers for name, text in layer.items() if name.startswith(self._prefix)}
        return ((name[len(self._prefix) :], text) for name, text in merged.items())

    def check(self) -> None:
        """Checks the listener's own configs. Unknown names are accepted, as in Kafka: they may belong to a plug-in.

        :raises ConfigError: a value is invalid
        """
        for name, text in self.own():
            definition = declaration_of(self._prefix + name)
            if definition is not None:
                definition.parse_set(text)

    def _own(self, name: str) -> str | None:
        name = self._prefix + name
        settings = self._settings
        for layer in (settings.broker_overrides, settings.cluster_overrides, settings.originals):
            if name in layer:
                return layer[name]
        return None
