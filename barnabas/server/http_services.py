"""The HTTP services that a node has beside its listeners: those whose config is set.

Knows nothing of what they serve. Each is a package above this one; its module is imported by name, and only if its
config is set.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from barnabas.config import BrokerConfig
from barnabas.config.validators import ConfigError

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


class MissingExtra(ConfigError):
    """The packages of services are not installed.

    :param missing: by the config of a service, the extra that has its packages
    """

    def __init__(self, missing: Mapping[str, str]) -> None:
        hint = f"pip install 'barnabas[{','.join(missing.values())}]'"
        ValueError.__init__(
            self, f"what {' and '.join(missing)} need{'s' * (len(missing) == 1)} is not installed: {hint}"
        )
        self.missing = missing


def new_services(server: object, config: BrokerConfig) -> list[Any]:
    """Returns the services of a :class:`barnabas.server.server.Server`.

    :raises ConfigError: the config of one is not valid
    :raises MissingExtra: the packages of some are not installed
    """
    services, missing = [], dict[str, str]()
    for name, module in MODULES.items():
        if config[name]:
            try:
                services.append(import_module(module).new_service(server))
            except MissingExtra as error:
                missing |= error.missing
    if missing:
        raise MissingExtra(missing)
    return services
