"""The registry as an ASGI application: routes, content types, errors as JSON, and forwarding to the node that writes.

Knows nothing of what the endpoints do.
"""

import json
import logging
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.endpoints import ENDPOINTS, Endpoint, Text
from barnabas.registry.errors import RegistryError, error
from barnabas.registry.forwarding import FORWARDED, forward
from barnabas.registry.registry import Registry
from barnabas.registry.registry_request import RegistryRequest
from barnabas.registry.schemas_log import SchemasLog
from barnabas.server.http import Application, Receive, Scope, Send

logger = logging.getLogger(__name__)

V1: Final = "application/vnd.schemaregistry.v1+json"
JSON: Final = "application/json"
PRODUCED: Final = (V1, "application/vnd.schemaregistry+json", JSON)
CONSUMED: Final = (*PRODUCED, "application/octet-stream")

Pattern = tuple[tuple[str, ...], dict[str, Endpoint]]
PATTERNS: Final[list[Pattern]] = [(tuple(path.strip("/").split("/")), methods) for path, methods in ENDPOINTS.items()]


def new_application(log: SchemasLog, registry: Registry) -> Application:
    """Returns the application of one node."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        request = Request(scope, receive)
        response = await _answer(log, registry, request)
        await response(scope, receive, send)

    return answer


async def _answer(log: SchemasLog, registry: Registry, request: Request) -> Response:
    try:
        endpoint, values, context = _found(request)
        _check_type(request)
        if not log.leads:
            if request.headers.get(FORWARDED):
                raise error("unknown_leader")
            return await forward(request, log.leader_url)
        await registry.catch_up()
        given = await endpoint(RegistryRequest(registry, request, values, context))
    except RegistryError as why:
        return _response(request, {"error_code": why.code, "message": str(why)}, why.status)
    except Exception:
        logger.exception("Unexpected error at %s %s", request.method, request.url.path)
        return _response(request, {"error_code": 500, "message": "Internal Server Error"}, 500)
    return _response(request, given, 204 if given is None else 200)


def _found(request: Request) -> tuple[Endpoint, dict[str, str], str]:
    """Returns the endpoint, the values in the path, and its context. :raises RegistryError: there is none"""
    # Names may contain escaped slashes, so the undecoded path has to be split.
    raw = request.scope.get("raw_path") or request.url.path.encode()
    parts = tuple(unquote(each) for each in raw.decode("latin-1").partition("?")[0].strip("/").split("/"))
    context = "."
    if len(parts) > 2 and parts[0] == "contexts":
        context, parts = parts[1].strip(":") or ".", parts[2:]
    other_methods = False
    for pattern, methods in PATTERNS:
        values = _matched(pattern, parts)
        if values is None:
            continue
        endpoint = methods.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is not None:
            return endpoint, values, context
        other_methods = True
    if other_methods:
        raise RegistryError(405, "HTTP 405 Method Not Allowed")
    raise RegistryError(404, "HTTP 404 Not Found")


def _matched(pattern: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(parts):
        return None
    values = {}
    for name, part in zip(pattern, parts, strict=True):
        if name.startswith("{"):
            values[name[1:-1]] = part
        elif name != part:
            return None
    return values


def _check_type(request: Request) -> None:
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if request.method in ("POST", "PUT") and kind not in CONSUMED:
        raise RegistryError(415, "HTTP 415 Unsupported Media Type")


def _response(request: Request, given: Any, status: int) -> Response:
    if given is None:
        return Response(status_code=status)
    wanted = [each.partition(";")[0].strip() for each in request.headers.get("accept", "").split(",")]
    kind = next((each for each in wanted if each in PRODUCED), V1)
    text = str(given) if isinstance(given, Text) else json.dumps(given, separators=(",", ":"), ensure_ascii=False)
    return Response(text, status, media_type=kind)
