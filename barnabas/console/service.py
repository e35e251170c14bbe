"""The console as a service of a server: ``barnabas.console.listener``.

Knows nothing of the pages, which are imported when somebody connects. It asks its own broker by a client, as it would
ask any other.
"""

from pathlib import Path
from typing import Any, Final

from barnabas.config.validators import ConfigError
from barnabas.server.http import Address, Application, HttpService, require
from barnabas.server.http_access import check_access, guarded
from barnabas.server.server import Server

LISTENER: Final = "barnabas.console.listener"
TOKEN: Final = "barnabas.console.token"
CLIENT: Final = "barnabas.console.client.config"
PACKAGES: Final = ("jinja2", "kafka", "rich")


class ConsoleService(HttpService):
    """The service."""

    def __init__(self, server: Server, address: Address) -> None:
        super().__init__("console", address, self._new_application)
        self._owner = server

    async def start(self) -> None:
        """Binds the address. A node that is only a controller has no listener for clients, and serves no console."""
        if self._owner.config.is_broker:
            await super().start()

    def _new_application(self) -> Application:
        from barnabas.cli.client import Cluster, read_properties
        from barnabas.cli.serve import client_address
        from barnabas.console.application import Console

        config = self._owner.config
        token, file = config[TOKEN], config[CLIENT]
        urls = {each.name: each.url for each in self._owner.http_services}
        console = Console(
            Cluster(client_address(self._owner), read_properties(file) if file else {}),
            token,
            registry=urls.get("schema-registry"),
            admin_api=urls.get("admin"),
            admin_token=config["barnabas.admin.token"],
            log_dirs=tuple(config.log_dirs),
        )
        application: Any = console.application()
        return application if token else guarded(application, None)


def needs_properties(server: Server) -> bool:
    """Returns whether clients need more than the address of the first listener."""
    config = server.config
    return config.is_broker and config.advertised_listeners[0].security_protocol != "PLAINTEXT"


def new_service(server: Server) -> ConsoleService:
    """Returns the service of a server.

    :raises ConfigError: other machines would reach it without a token, a package is missing, or its client needs
        properties
    """
    text, config = server.config[LISTENER], server.config
    require(LISTENER, text, "console", *PACKAGES)
    address = Address.parse(LISTENER, text)
    check_access(LISTENER, address, TOKEN, config[TOKEN])
    file = config[CLIENT]
    if file and not Path(file).is_file():
        raise ConfigError(CLIENT, file, "a file with the properties of a client")
    if not file and needs_properties(server):
        raise ConfigError(CLIENT, "", "a file with the properties of a client, as the first listener is not PLAINTEXT")
    return ConsoleService(server, address)
