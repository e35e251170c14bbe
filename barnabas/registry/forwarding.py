"""Forwards requests from a registry that does not write to the one that does.

Knows nothing of the requests' contents. The HTTP client runs in a thread, not in the broker's loop.
"""

import asyncio
import http.client
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.errors import error

FORWARDED: Final = "X-Forward"
"""The header of a forwarded request, which is not forwarded again (``RestService.X_FORWARD_HEADER``)."""

TIMEOUT_S: Final = 40
KEPT: Final = ("content-type", "accept", "authorization")


async def forward(request: Request, url: str | None) -> Response:
    """Returns the response of the registry at a URL. :raises RegistryError: it is unknown, or it does not answer"""
    if url is None:
        raise error("unknown_leader")
    path = request.scope["raw_path"].decode("latin-1")
    if request.url.query:
        path = f"{path.partition('?')[0]}?{request.url.query}"
    headers = {name: value for name, value in request.headers.items() if name in KEPT}
    body = await request.body()
    try:
        status, kind, data = await asyncio.to_thread(
            _ask, url, request.method, path, body, {**headers, FORWARDED: "true"}
        )
    except (OSError, http.client.HTTPException) as why:
        raise error("forwarding_failed", why) from None
    return Response(data, status, {"content-type": kind} if kind else None)


def _ask(url: str, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type"), answer.read()
    finally:
        connection.close()
