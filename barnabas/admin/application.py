"""The admin API as an ASGI application: routes, errors as JSON, and the OpenAPI document that describes them.

Knows nothing of what the endpoints do.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from barnabas import __version__
from barnabas.admin import contents, faults
from barnabas.admin.endpoints import AdminRequest, Endpoint, Refused, fields, known
from barnabas.errors import KafkaError
from barnabas.faults.naming import ImpossibleRule, error_name
from barnabas.server.http import Application
from barnabas.server.http_access import guarded
from barnabas.testing.controls import Controls

logger = logging.getLogger(__name__)

ENDPOINTS: Final[tuple[Endpoint, ...]] = (*contents.ENDPOINTS, *faults.ENDPOINTS)

ERROR: Final = fields(
    ("error",), error=fields(("type", "message"), type={"type": "string"}, message={"type": "string"})
)


def new_application(controls: Controls, token: str | None) -> Application:
    """Returns the application of one server."""
    document = described()

    async def openapi(request: Request) -> Response:
        return JSONResponse(document)

    methods: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for endpoint in ENDPOINTS:
        methods[endpoint.path][endpoint.method] = endpoint
    routes = [
        Route(path, _answering(controls, by_method), methods=list(by_method)) for path, by_method in methods.items()
    ]
    handlers: dict[Any, Any] = {HTTPException: _not_found, Exception: _bug}
    return guarded(Starlette(routes=[Route("/openapi.json", openapi), *routes], exception_handlers=handlers), token)


def _answering(controls: Controls, by_method: dict[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        endpoint = by_method["GET" if request.method == "HEAD" else request.method]
        try:
            known("parameter", request.query_params, endpoint.query)
            found = await endpoint.answer(AdminRequest(controls, request))
        except Refused as error:
            return _error(error.status, "Refused", str(error))
        except ImpossibleRule as error:
            return _error(400, "ImpossibleRule", str(error))
        except KafkaError as error:
            return _error(409, error_name(type(error)), str(error))
        except (ValueError, TypeError) as error:
            return _error(400, type(error).__name__, str(error))
        if found is None:
            return Response(status_code=endpoint.status)
        return found if isinstance(found, Response) else JSONResponse(found, endpoint.status)

    return answer


def _error(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"type": kind, "message": message}}, status)


async def _not_found(request: Request, error: HTTPException) -> Response:
    response = _error(error.status_code, str(error.detail), f"{request.method} {request.url.path}: see /openapi.json")
    response.headers.update(error.headers or {})
    return response


async def _bug(request: Request, error: Exception) -> Response:
    logger.error("Unexpected error at %s %s", request.method, request.url.path, exc_info=error)
    return _error(500, type(error).__name__, "see the broker's log")


# ---------------------------------------------------------------- OpenAPI


def described() -> dict[str, Any]:
    """Returns the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for endpoint in ENDPOINTS:
        paths[endpoint.path][endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Barnabas: the admin API for tests", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.answers is not None:
        answer["content"] = {endpoint.answer_type: {"schema": endpoint.answers}}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ] + [
        {"name": name, "in": "query", "schema": schema, "description": meaning}
        for name, (schema, meaning) in endpoint.query.items()
    ]
    error = {"description": "Why not", "content": {"application/json": {"schema": ERROR}}}
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}{endpoint.path.title()}".translate(NO_NAME),
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {str(endpoint.status): answer, "default": error},
    }
    if endpoint.body is not None:
        text = {"type": "string"}
        operation["requestBody"] = {
            "content": {
                kind: {"schema": text if kind.startswith("text/") or kind.endswith("yaml") else endpoint.body}
                for kind in endpoint.body_types
            }
        }
    return operation


NO_NAME: Final = str.maketrans("", "", "/{}-_")
