"""The schema registry as a service of a server: ``barnabas.schema.registry.listener``.

Knows nothing of the endpoints, which are imported at the first connection.
"""

import asyncio
import logging
from typing import Final

from barnabas.clock import Timer
from barnabas.errors import KafkaError
from barnabas.records.batch import RecordBatch
from barnabas.registry.errors import RegistryError
from barnabas.server.http import Address, Application, HttpService, require
from barnabas.server.http_access import guarded
from barnabas.server.server import Server

logger = logging.getLogger(__name__)

LISTENER: Final = "barnabas.schema.registry.listener"
PACKAGES: Final = ("fastavro", "jsonschema", "grpc_tools")
ANNOUNCED_EACH_S: Final = 1.0
"""How often a node in a cluster of several checks whether it has become the one that writes, and announces it."""


class RegistryService(HttpService):
    """The service."""

    def __init__(self, server: Server, address: Address) -> None:
        super().__init__("schema-registry", address, self._new_application)
        self._broker_server = server
        self._timer: Timer | None = None

    async def start(self) -> None:
        """Binds the address. A node that is only a controller has no partitions, and serves no registry."""
        if not self._broker_server.config.is_broker:
            return
        from barnabas.registry.schemas_log import SchemasLog

        await super().start()
        self._log = SchemasLog(self._broker_server.broker, self._url_for_others())
        self._broker_server.broker.value_check = self._checked
        self._look()

    def _checked(self, topic: str, batch: RecordBatch) -> None:
        """Checks the first batch of a topic with validation, and then has the broker call the check directly."""
        from barnabas.registry.validation import ValueCheck

        check = self._broker_server.broker.value_check = ValueCheck(self._log)
        check(topic, batch)

    def _url_for_others(self) -> str:
        """Returns the URL for other nodes. If the address is that of every interface, it has the broker's host."""
        address = self.address
        if address.host in ("", "0.0.0.0", "::"):
            advertised = next(iter(self._broker_server.config.advertised_listeners))
            address = address._replace(host=advertised.host or "127.0.0.1")
        return f"http://{address}"

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._announcing = loop.create_task(self._announce())
        self._timer = loop.call_later(ANNOUNCED_EACH_S, self._look)

    async def _announce(self) -> None:
        try:
            await self._log.announce()
        except (RegistryError, KafkaError) as why:
            logger.debug("Cannot record the URL of this registry: %s", why)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._announcing.cancel()
        await super().stop()

    def _new_application(self) -> Application:
        from barnabas.registry.application import new_application
        from barnabas.registry.registry import Registry

        application = new_application(self._log, Registry(self._log))
        return guarded(application, None) if self.address.is_local else application


def new_service(server: Server) -> RegistryService:
    """Returns the service of a server. :raises ConfigError: a package is missing, or the text is no address"""
    text = server.config[LISTENER]
    require(LISTENER, "registry", *PACKAGES)
    return RegistryService(server, Address.parse(LISTENER, text))
