"""The interface of settings: parsed values by the names of configs.

Knows nothing of where values come from. A ``BrokerConfig``, a group's configs and a dict have this interface.
"""

from typing import Any, Protocol


class Settings(Protocol):
    """Parsed values by name."""

    def __getitem__(self, name: str, /) -> Any: ...


class ListenerSettings(Settings, Protocol):
    """The configs of a listener (:class:`barnabas.config.listener_configs.ListenerConfigs`), or of a client."""

    listener_name: str

    def of_mechanism(self, mechanism: str, name: str) -> Any:
        """Returns the value for a SASL mechanism: its own, or else the listener's."""
        ...
