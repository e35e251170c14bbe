"""Describes configs as DescribeConfigs does: the value, its source, and its synonyms.

Knows nothing of the protocol. Sources, the order of synonyms and hidden values are those of Kafka's ``ConfigHelper``
and ``DynamicBrokerConfig``; in responses to CreateTopics those of its ``KafkaConfigSchema``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

from barnabas.config.broker import BrokerConfig
from barnabas.config.definition import READ_ONLY, ConfigDef, ConfigType, Synonym, text_of
from barnabas.config.definitions import BROKER, FAMILY_OF, TOPIC, of_client_metrics, of_groups
from barnabas.config.listener_configs import declaration_of
from barnabas.config.validators import ConfigError


class ConfigSource(IntEnum):
    """The source of a value (``ConfigSource`` of DescribeConfigs, KIP-226)."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class DescribedSynonym(NamedTuple):
    """A possible source of a value, and the value there."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """A config in a response; ``value`` is None if there is none, or if it is sensitive."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool = False
    sensitive: bool = False
    type: ConfigType = ConfigType.UNKNOWN
    synonyms: tuple[DescribedSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether the value is a default."""
        return self.source is ConfigSource.DEFAULT


Names = Collection[str] | None


def describe_broker(config: BrokerConfig, names: Names = None) -> list[DescribedConfig]:
    """Returns all configs of this broker, or those with these names: Kafka's, and unknown ones that are set."""
    known = {definition.name: None for definition in BROKER.values() if not definition.internal}
    known.update(dict.fromkeys(_set_names(config)))
    return [_describe_broker_config(config, name) for name in _wanted(known, names)]


def describe_cluster_default(config: BrokerConfig, names: Names = None) -> list[DescribedConfig]:
    """Returns the dynamic configs of all brokers."""
    described = []
    for name in _wanted(config.cluster_overrides, names):
        entry = _describe_broker_config(config, name)
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        synonyms = tuple(synonym for synonym in entry.synonyms if synonym.source is source)
        value = None if entry.sensitive else config.cluster_overrides[name]
        described.append(entry._replace(value=value, source=source, synonyms=synonyms))
    return described


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str], names: Names = None) -> list[DescribedConfig]:
    """Returns all configs of a topic with these overrides, or those with these names."""
    known = {definition.name: None for definition in TOPIC.values() if not definition.internal}
    known.update(dict.fromkeys(name for name in overrides if name in TOPIC))
    return [_describe_topic_config(config, TOPIC[name], overrides) for name in _wanted(known, names)]


def describe_group(config: BrokerConfig, overrides: Mapping[str, str], names: Names = None) -> list[DescribedConfig]:
    """Returns all configs of a group with these overrides, or those with these names."""
    described = []
    for name, definition in of_groups().items():
        if names and name not in names:
            continue
        synonyms = [_of_itself(definition, overrides, ConfigSource.GROUP)] if name in overrides else []
        if definition.synonyms:
            synonyms.extend(_broker_synonyms(config, definition.synonyms[0].name))
            value = config[definition.synonyms[0].name]
        else:
            value = definition.default
            synonyms.append(DescribedSynonym(name, text_of(definition.type, value), ConfigSource.DEFAULT))
        described.append(_topmost(definition, text_of(definition.type, value), synonyms))
    return described


def describe_client_metrics(overrides: Mapping[str, str], names: Names = None) -> list[DescribedConfig]:
    """Returns all configs of a client metrics subscription with these overrides, or those with these names."""
    described = []
    for name, definition in of_client_metrics().items():
        if names and name not in names:
            continue
        synonyms = [_of_itself(definition, overrides, ConfigSource.CLIENT_METRICS)] if name in overrides else []
        described.append(_topmost(definition, text_of(definition.type, definition.default), synonyms))
    return described


def describe_created_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[DescribedConfig]:
    """Returns the configs of a new topic as in the response to CreateTopics: by name, with the texts of the request."""
    described = []
    for name in sorted(name for name, definition in TOPIC.items() if not definition.internal or name in overrides):
        definition = TOPIC[name]
        if name in overrides:
            described.append(DescribedConfig(name, overrides[name], ConfigSource.DYNAMIC_TOPIC))
        else:
            value = text_of(definition.type, config.topic_values[name])
            source, given = _given(config, definition.synonyms)
            described.append(DescribedConfig(name, value if given is None else given, source))
    return described


def _wanted(known: Mapping[str, object], names: Names) -> Iterator[str]:
    return (name for name in known if not names or name in names)


def _set_names(config: BrokerConfig) -> Iterator[str]:
    for layer in (config.originals, config.cluster_overrides, config.broker_overrides):
        yield from layer


def _layers(config: BrokerConfig) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
    return (
        (ConfigSource.DYNAMIC_BROKER, config.broker_overrides),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, config.cluster_overrides),
        (ConfigSource.STATIC_BROKER, config.originals),
    )


def _describe_broker_config(config: BrokerConfig, name: str) -> DescribedConfig:
    definition = declaration_of(name)
    sensitive = definition is None or definition.sensitive
    synonyms = _broker_synonyms(config, name, sensitive=sensitive)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    value = None
    if definition is not None and not sensitive:
        is_listeners = definition.name != name
        value = synonyms[0].value if is_listeners else text_of(definition.type, config[name])
    return DescribedConfig(
        name,
        value,
        source,
        read_only=name not in BROKER or BROKER[name].scope == READ_ONLY,
        sensitive=sensitive,
        type=definition.type if definition is not None else ConfigType.UNKNOWN,
        synonyms=tuple(synonyms),
        documentation=BROKER[name].doc if name in BROKER else None,
    )


def _broker_synonyms(config: BrokerConfig, name: str, *, sensitive: bool = False) -> list[DescribedSynonym]:
    """Returns the values of the config and its family in order of precedence, from the first one of its own name on."""
    definition = declaration_of(name)
    family = FAMILY_OF.get(name) or ((name,) if definition is None or name in BROKER else (name, definition.name))
    found = [
        DescribedSynonym(relative, None if sensitive else layer[relative], source)
        for source, layer in _layers(config)
        for relative in family
        if relative in layer
    ]
    for relative in family:
        definition = BROKER.get(relative)
        if definition is not None and (default := config.default(relative)) is not None:
            text = None if sensitive else text_of(definition.type, default)
            found.append(DescribedSynonym(relative, text, ConfigSource.DEFAULT))
    own = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[own:]


def _describe_topic_config(
    config: BrokerConfig, definition: ConfigDef, overrides: Mapping[str, str]
) -> DescribedConfig:
    synonyms = []
    if definition.name in overrides:
        synonyms.append(_of_itself(definition, overrides, ConfigSource.DYNAMIC_TOPIC))
    if definition.synonyms:
        synonyms.extend(_broker_synonyms(config, definition.synonyms[0].name))
    return _topmost(definition, text_of(definition.type, config.topic_values[definition.name]), synonyms)


def _of_itself(definition: ConfigDef, overrides: Mapping[str, str], source: ConfigSource) -> DescribedSynonym:
    text: str | None = overrides[definition.name]
    # A value that this version cannot parse is returned unchanged.
    with suppress(ConfigError):
        text = text_of(definition.type, definition.parse_set(overrides[definition.name]))
    return DescribedSynonym(definition.name, text, source)


def _topmost(definition: ConfigDef, fallback: str | None, synonyms: Iterable[DescribedSynonym]) -> DescribedConfig:
    """Returns the config with the value of its first synonym if that has the same name, otherwise the fallback."""
    synonyms = tuple(synonyms)
    first = synonyms[0] if synonyms else DescribedSynonym(definition.name, fallback, ConfigSource.DEFAULT)
    own = first.name == definition.name and first.source not in _BROKER_SOURCES
    return DescribedConfig(
        definition.name,
        first.value if own else fallback,
        first.source,
        type=definition.type,
        synonyms=synonyms,
        documentation=definition.doc,
    )


_BROKER_SOURCES = (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.STATIC_BROKER)


def _given(config: BrokerConfig, synonyms: Iterable[Synonym]) -> tuple[ConfigSource, str | None]:
    """Returns the source of the first synonym that is set, and its text if it has the topic's unit."""
    for source, layer in _layers(config):
        for synonym in synonyms:
            if synonym.name in layer:
                return source, layer[synonym.name] if synonym.scale == 1 else None
    return ConfigSource.DEFAULT, None
