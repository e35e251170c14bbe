"""Which HTTP services a node has beside its listeners: those whose config is set.

Knows nothing of what they serve. Each is a room above this one; its module is imported by name, and only if its config
is set.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from barnabas.config import BrokerConfig

if TYPE_CHECKING:
    from barnabas.server.http import HttpService

MODULES: Final[Mapping[str, str]] = {}
"""By config, the module whose ``new_service(server)`` returns the :class:`HttpService`."""


def new_services(server: object, config: BrokerConfig) -> "Iterator[HttpService]":
    """Yields the services of a :class:`barnabas.server.server.Server`.

    :raises ConfigError: the config of one is not valid, or its extra is not installed
    """
    for name, module in MODULES.items():
        if config[name]:
            yield import_module(module).new_service(server)
