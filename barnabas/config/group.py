"""The effective configs of a group: its own, or else the broker's defaults.

Knows nothing of groups. A value outside the broker's bounds is replaced with the nearest bound (Kafka's
``GroupConfig.evaluate``).
"""

from collections.abc import Mapping
from typing import Any

from barnabas.config.bounds import BOUNDS
from barnabas.config.broker import BrokerConfig
from barnabas.config.definitions import of_groups


class GroupSettings:
    """One group's configs by name: ``settings["consumer.session.timeout.ms"]``.

    >>> from barnabas.config import BrokerConfig
    >>> settings = GroupSettings(BrokerConfig.from_properties({}), {"share.auto.offset.reset": "earliest"})
    >>> settings["share.auto.offset.reset"], settings["consumer.session.timeout.ms"]
    ('earliest', 45000)
    """

    __slots__ = ("_config", "_overrides")

    def __init__(self, config: BrokerConfig, overrides: Mapping[str, str]) -> None:
        self._config = config
        self._overrides = overrides

    def __getitem__(self, name: str) -> Any:
        definition = of_groups()[name]
        own = self._overrides.get(name)
        if own is None:
            return self._config[definition.synonyms[0].name] if definition.synonyms else definition.default
        value = definition.parse(own)
        if name in BOUNDS:
            # The broker's bounds may have changed since the value was set.
            least, most = BOUNDS[name]
            value = min(value, self._config[most])
            value = value if least is None else max(value, self._config[least])
        return value
