"""The console's ASGI application: each address with its page.

Knows nothing of how Kafka is asked; ``reading`` does that, in threads. It changes nothing in the cluster. Values are
escaped by jinja2, and the Content-Security-Policy lets a browser run no script at all.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from barnabas.console import reading
from barnabas.console.reading import Client, Missing

TOPICS_ON_A_PAGE: Final = 50
PARTITIONS_ON_A_PAGE: Final = 100
RECORDS_ON_A_PAGE: Final = 50
LARGEST_OFFSET: Final = 2**63 - 1

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


class Console:
    """The pages of one cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._templates = Environment(
            loader=PackageLoader("barnabas.console"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )

    def application(self) -> Starlette:
        """Returns the ASGI application."""
        pages = {
            "/": self._overview,
            "/topics": self._topics,
            "/topics/{topic}": self._topic,
            "/topics/{topic}/records": self._records,
        }
        static = StaticFiles(directory=Path(__file__).with_name("static"))
        return Starlette(
            routes=[
                *(Route(path, self._answering(page), methods=["GET"]) for path, page in pages.items()),
                Mount("/static", static),
            ]
        )

    def _answering(self, page: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        from kafka.errors import KafkaError

        async def answer(request: Request) -> Response:
            try:
                return await page(request)
            except Missing as error:
                return self._problem(404, str(error), "Choose one of the topics that exist.")
            except ValueError as error:
                return self._problem(400, str(error), "Correct the address, or begin at the topics.")
            except KafkaError as error:
                hint = f"Check that a broker answers at {self._client.bootstrap_server}, then load this page again."
                return self._problem(502, str(error) or type(error).__name__, hint)

        return answer

    def _page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        text = self._templates.get_template(template).render(server=self._client.bootstrap_server, **values)
        return HTMLResponse(text, status, headers=HEADERS)

    def _problem(self, status: int, message: str, hint: str) -> HTMLResponse:
        return self._page("problem.html", status, message=message, hint=hint)

    async def _overview(self, request: Request) -> Response:
        return self._page("overview.html", cluster=await run_in_threadpool(reading.overview, self._client))

    async def _topics(self, request: Request) -> Response:
        search = request.query_params.get("search", "").strip()
        number = _whole(request, "page", 1)
        page = await run_in_threadpool(reading.topics, self._client, search, number, TOPICS_ON_A_PAGE)
        return self._page("topics.html", page=page, search=search)

    async def _topic(self, request: Request) -> Response:
        name, number = request.path_params["topic"], _whole(request, "page", 1)
        found = await run_in_threadpool(reading.topic, self._client, name, number, PARTITIONS_ON_A_PAGE)
        return self._page("topic.html", topic=found, page=found["page"])

    async def _records(self, request: Request) -> Response:
        name, partition = request.path_params["topic"], _whole(request, "partition", 0)
        offset = _whole(request, "offset", 0) if request.query_params.get("offset", "").strip() else None
        batch = await run_in_threadpool(reading.records, self._client, name, partition, offset, RECORDS_ON_A_PAGE)
        return self._page("records.html", topic=name, partition=partition, batch=batch, size=RECORDS_ON_A_PAGE)


def _whole(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > LARGEST_OFFSET:
        raise ValueError(f"{name} is {text!r}, but must be a number from 0 on.")
    return int(text)
