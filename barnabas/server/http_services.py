"""The HTTP services that a node has beside its listeners: those whose config is set.

Knows nothing of what they serve. Each is a package above this one; its module is imported by name, and only if its
config is set.
"""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from barnabas.config import BrokerConfig

MODULES: Final[Mapping[str, str]] = {
    "barnabas.admin.listener": "barnabas.admin.service",
    "barnabas.console.listener": "barnabas.console.service",
    "barnabas.metrics.listener": "barnabas.metrics.service",
    "barnabas.schema.registry.listener": "barnabas.registry.service",
}
"""By config, the module whose ``new_service(server)`` returns a :class:`barnabas.server.http.HttpService`."""


PACKAGES: Final = ("starlette", "uvicorn")
"""The packages that every service needs. The extra of each service contains them."""


def has_packages(*packages: str) -> bool:
    """Returns whether these packages, and those that every service needs, are installed. Imports none of them.

    Asks the finders directly, since importing ``importlib.util`` would add milliseconds to every start.
    """
    return all(
        each in sys.modules or any(finder.find_spec(each, None) is not None for finder in sys.meta_path)
        for each in (*PACKAGES, *packages)
    )


def new_services(server: object, config: BrokerConfig) -> Iterator[Any]:
    """Yields the services of a :class:`barnabas.server.server.Server`.

    :raises ConfigError: the config of one is not valid, or its extra is not installed
    """
    for name, module in MODULES.items():
        if config[name]:
            yield import_module(module).new_service(server)
