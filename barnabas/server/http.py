"""Serves ASGI applications beside the listeners, by uvicorn in the broker's own event loop.

Knows nothing of what an application answers. Until the first connection a service is only a listening socket: uvicorn
is imported and the application is made then.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from barnabas.config.validators import ConfigError
from barnabas.server.http_services import MissingExtra, has_packages
from barnabas.server.listener import bind

if TYPE_CHECKING:
    import ssl

    import uvicorn

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application, as those of starlette are."""

BACKLOG: Final = 128

LAST_ANSWERS_S: Final = 1
"""How long a service that stops waits for requests in progress, before it cancels them."""


class Address(NamedTuple):
    """The address of a service, as its config gives it."""

    host: str
    port: int
    is_https: bool = False

    @classmethod
    def parse(cls, config: str, text: str, *, allows_https: bool = False) -> Self:
        """Returns the address of ``host:port`` or ``http://host:port``; an empty host is every interface.

        :param config: the config that has this text
        :param allows_https: whether it may be ``https://host:port``
        :raises ConfigError: it is no such address
        """
        scheme, has_scheme, rest = text.strip().rpartition("://")
        host, colon, port = rest.rstrip("/").rpartition(":")
        is_known = not has_scheme or scheme == "http" or (scheme == "https" and allows_https)
        if not is_known or not colon or not port.isdecimal() or int(port) > 65535:
            raise ConfigError(config, text, "an address like 127.0.0.1:8080; the port 0 is any free one")
        return cls(host.removeprefix("[").removesuffix("]"), int(port), scheme == "https")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or self.host == "::1" or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def require(config: str, extra: str, *packages: str) -> None:
    """Checks, without an import, that the packages of an extra are installed.

    :raises MissingExtra: one is missing
    """
    if not has_packages(*packages):
        raise MissingExtra({config: extra})


class HttpService:
    """A service that serves one application at one address. It is bound when it has started.

    :param new_application: makes the application at the first connection, in another thread: imports take long there
    :param tls: the context of TLS, if the address is one of HTTPS
    """

    def __init__(
        self, name: str, address: Address, new_application: Callable[[], Application],
        tls: "ssl.SSLContext | None" = None,
    ) -> None:  # fmt: skip
        self.name = name
        self._tls = tls
        self.address = address  #: with the port that it is bound to, once it has started
        self._new_application = new_application
        self._sockets: list[socket.socket] = []
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The URL for clients on this machine: ``http://127.0.0.1:40321``."""
        wildcards = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
        scheme = "https" if self.address.is_https else "http"
        return f"{scheme}://{self.address._replace(host=wildcards.get(self.address.host, self.address.host))}"

    async def start(self) -> None:
        """Binds the address. :raises OSError: it cannot be bound"""
        self._sockets = bind(self.address.host, self.address.port, BACKLOG)
        self.address = self.address._replace(port=self._sockets[0].getsockname()[1])
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.add_reader(each, self._begin)
        logger.info("Serving %s at %s", self.name, self.url)

    def _begin(self) -> None:
        """Starts uvicorn at the first connection, which waits in the backlog meanwhile."""
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.remove_reader(each)
        self._serving = loop.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            server = await asyncio.get_running_loop().run_in_executor(None, self._new_server)
            # What Server.serve() does, without signal handlers, which belong to the process, and without a tick each
            # 0.1 s.
            await server.startup(self._sockets)
        except Exception:
            logger.exception("Cannot serve the %s", self.name)
            self._close_sockets()
        else:
            self._server = server

    def _new_server(self) -> "uvicorn.Server":
        import uvicorn

        config = uvicorn.Config(
            self._new_application(),
            loop="none",
            ws="none",
            lifespan="auto",
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            date_header=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
        )
        config.load()
        config.ssl = self._tls
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        return server

    async def stop(self) -> None:
        """Stops accepting connections. Requests in progress are answered, or cancelled after a second."""
        if self._serving is None:
            loop = asyncio.get_running_loop()
            for each in self._sockets:
                loop.remove_reader(each)
        else:
            await self._serving
        if self._server is not None:
            server, self._server = self._server, None
            await server.shutdown()
        self._close_sockets()

    def _close_sockets(self) -> None:
        for each in self._sockets:
            each.close()
        self._sockets = []
