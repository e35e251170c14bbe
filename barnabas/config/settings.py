"""The interface of settings: parsed values by the names of configs.

Knows nothing of where values come from. A ``BrokerConfig``, a group's configs and a dict have this interface.
"""

from typing import Any, Protocol


class Settings(Protocol):
    """Parsed values by name."""

    def __getitem__(self, name: str, /) -> Any: ...
