"""The admin API as a service of a server: ``barnabas.admin.listener``.

Knows nothing of the endpoints, which are imported at the first connection.
"""

import asyncio
from typing import Final

from barnabas.cluster.image.image import MetadataImage
from barnabas.server.http import Address, Application, HttpService, require
from barnabas.server.http_access import check_access
from barnabas.server.server import Server

LISTENER: Final = "barnabas.admin.listener"
TOKEN: Final = "barnabas.admin.token"


class AdminService(HttpService):
    """The service. At its start it records the state that a reset restores. Everything else is imported at the first
    request.
    """

    def __init__(self, address: Address, server: Server, token: str | None) -> None:
        super().__init__("admin", address, self._application)
        self._owner, self._token = server, token
        self._image: MetadataImage
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        self._loop, self._image = asyncio.get_running_loop(), self._owner.broker.image
        await super().start()

    def _application(self) -> Application:
        from barnabas.admin.application import new_application
        from barnabas.testing.controls import Controls

        controls = Controls.of(self._owner)
        controls.begin(self._loop, self._image)
        return new_application(controls, self._token)


def new_service(server: Server) -> AdminService:
    """Returns the service of a server.

    :raises ConfigError: other machines would reach it without a token, or a package is missing
    """
    text, token = server.config[LISTENER], server.config[TOKEN]
    require(LISTENER, "admin")
    address = Address.parse(LISTENER, text)
    check_access(LISTENER, address, TOKEN, token)
    return AdminService(address, server, token)
