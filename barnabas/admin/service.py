"""The admin API as a service of a server: ``barnabas.admin.listener``.

Knows nothing of what it answers, which is imported when somebody connects.
"""

from typing import Final

from barnabas.server.http import Address, HttpService, require
from barnabas.server.http_access import check_access
from barnabas.server.server import Server
from barnabas.testing.controls import Controls

LISTENER: Final = "barnabas.admin.listener"
TOKEN: Final = "barnabas.admin.token"


class AdminService(HttpService):
    """The service, which notes at its start what a reset comes back to."""

    controls: Controls

    async def start(self) -> None:
        self.controls.begin()
        await super().start()


def new_service(server: Server) -> AdminService:
    """Returns the service of a server.

    :raises ConfigError: other machines would reach it without a token, or a package is missing
    """
    text, token = server.config[LISTENER], server.config[TOKEN]
    require(LISTENER, text, "admin")
    address = Address.parse(LISTENER, text)
    check_access(LISTENER, address, TOKEN, token)
    controls = Controls.of(server)

    def new_application() -> object:
        from barnabas.admin.application import new_application

        return new_application(controls, token)

    service = AdminService("admin", address, new_application)  # type: ignore[arg-type]
    service.controls = controls
    return service
