"""The metrics as an ASGI application: /metrics for Prometheus, /health/live and /health/ready for orchestrators.

Knows nothing of what is measured.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from barnabas.server.http import Application


class Collected:
    """What a registry had at one moment, as a registry that an encoder can read."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


def new_application(registry: CollectorRegistry, unready: Callable[[], str | None]) -> Application:
    """Returns the application of one node.

    :param unready: returns why clients cannot be served; None if they can
    """

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        # What is collected must not change meanwhile; to format it takes longer, and holds nobody up in a thread.
        text = await run_in_threadpool(encode, Collected(list(registry.collect())))
        return Response(text, headers={"content-type": content_type})

    async def live(request: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def ready(request: Request) -> Response:
        why = unready()
        if why is None:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready", "why": why}, 503)

    async def root(request: Request) -> Response:
        return RedirectResponse("/metrics")

    routes = {"/": root, "/metrics": metrics, "/health/live": live, "/health/ready": ready}
    return Starlette(routes=[Route(path, endpoint) for path, endpoint in routes.items()])
