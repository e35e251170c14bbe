"""The console as a service of a server: ``barnabas.console.listener``.

Knows nothing of the pages, which are imported at the first connection. It reads its own broker through a client, as any
other cluster.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError
from barnabas.server.http import Address, Application, HttpService, require
from barnabas.server.http_access import check_access, guarded
from barnabas.server.server import Server

if TYPE_CHECKING:
    import ssl

LISTENER: Final = "barnabas.console.listener"
TOKEN: Final = "barnabas.console.token"
MECHANISM: Final = "barnabas.console.sasl.mechanism"
CLIENT: Final = "barnabas.console.client.config"
PACKAGES: Final = ("jinja2", "kafka", "rich")

NAME: Final = "console"
"""The name of the service, also in ``listener.name.console.ssl.keystore.location``."""


class ConsoleService(HttpService):
    """The service. An address of HTTPS needs the configs of TLS that a listener of its name would need."""

    def __init__(self, server: Server, address: Address) -> None:
        super().__init__(NAME, address, self._new_application, _new_context(server) if address.is_https else None)
        self._owner = server

    async def start(self) -> None:
        """Binds the address. A node that is only a controller has no listener for clients, so it serves no console."""
        if self._owner.config.is_broker:
            await super().start()

    def _new_application(self) -> Application:
        from barnabas.cli.client import Cluster, read_properties
        from barnabas.cli.serve import client_address
        from barnabas.console.application import Console
        from barnabas.console.users import Users

        config = self._owner.config
        token, mechanism, file = config[TOKEN], config[MECHANISM], config[CLIENT]
        server, properties = client_address(self._owner), read_properties(file) if file else {}
        urls = {each.name: each.url for each in self._owner.http_services}
        sources: dict[str, Any] = {"registry": urls.get("schema-registry")}
        if mechanism:
            protocol = config.advertised_listeners[0].security_protocol
            sources["users"] = Users(server, {**properties, "security.protocol": protocol}, mechanism)
        else:  # ACLs do not cover faults, recorded requests and files
            sources |= {
                "admin_api": urls.get("admin"),
                "admin_token": config["barnabas.admin.token"],
                "log_dirs": tuple(config.log_dirs),
            }
        application: Any = Console(Cluster(server, properties), token, **sources).application()
        return application if token or mechanism else guarded(application, None)


def _new_context(server: Server) -> "ssl.SSLContext":
    """Returns the context of TLS. :raises ConfigError: there is no key store, or it is not usable"""
    from barnabas.security.tls.engine import Engine
    from barnabas.security.tls.reading import read_store

    engine = Engine(ListenerConfigs(server.config, NAME), read_store)
    if engine.keys is None:
        name = f"listener.name.{NAME}.ssl.keystore.location"
        raise ConfigError(name, "", f"a key store, as {LISTENER} is an address of HTTPS")
    return engine.context


def needs_properties(server: Server) -> bool:
    """Returns whether clients need further properties than the address of the first listener."""
    config = server.config
    return config.is_broker and config.advertised_listeners[0].security_protocol != "PLAINTEXT"


def new_service(server: Server) -> ConsoleService:
    """Returns the service of a server.

    :raises ConfigError: other machines could use it without a login, a package is missing, its client needs
        properties, or it needs a key store
    """
    text, config = server.config[LISTENER], server.config
    require(LISTENER, "console", *PACKAGES)
    address = Address.parse(LISTENER, text, allows_https=True)
    check_access(LISTENER, address, f"{TOKEN} or {MECHANISM}", config[TOKEN] or config[MECHANISM])
    file = config[CLIENT]
    if file and not Path(file).is_file():
        raise ConfigError(CLIENT, file, "a file with the properties of a client")
    if config[MECHANISM]:
        _check_mechanism(server, config[MECHANISM])
    elif not file and needs_properties(server):
        raise ConfigError(CLIENT, "", "a file with the properties of a client, as the first listener is not PLAINTEXT")
    return ConsoleService(server, address)


def _check_mechanism(server: Server, mechanism: str) -> None:
    """Checks that users can log in by the mechanism. :raises ConfigError: they cannot"""
    config = server.config
    if config[TOKEN]:
        raise ConfigError(TOKEN, "[hidden]", f"left out where {MECHANISM} is set")
    from barnabas.console.users import MECHANISMS

    if mechanism not in MECHANISMS:
        raise ConfigError(MECHANISM, mechanism, f"one of {', '.join(MECHANISMS)}")
    if config.is_broker:
        listener = config.advertised_listeners[0]
        enabled = ListenerConfigs(config, listener.name)["sasl.enabled.mechanisms"]
        if not listener.security_protocol.startswith("SASL") or mechanism not in enabled:
            raise ConfigError(MECHANISM, mechanism, f"enabled by the first listener, {listener.name}")
