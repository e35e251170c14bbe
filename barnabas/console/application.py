"""The console's ASGI application: each address with its page, who may enter, and errors as pages.

Knows nothing of what pages show. Values are escaped by jinja2; the Content-Security-Policy lets a browser run the
console's own files only, and no script within a page.
"""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import click
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount
from starlette.routing import Route as Served
from starlette.staticfiles import StaticFiles

from barnabas.console import pages
from barnabas.console.access import FIELD, HEADER, LOGIN, Access, login_address, within
from barnabas.console.filters import FILTERS
from barnabas.console.lags import Lags
from barnabas.console.page import Answer, Data, Moved, PageRequest, Route, Shown, Sources
from barnabas.console.reading import Client, Missing

LARGEST_FORM: Final = 4 << 20

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


class Console:
    """The pages of one cluster.

    :param token: what users must know; None where only this machine reaches the console
    :param sources: what is known beside the cluster: a schema registry, an admin API, a broker's log directories
    """

    def __init__(self, client: Client, token: str | None = None, **sources: Any) -> None:
        self._sources = Sources(client, Lags(), **sources)
        self._access = Access(token)
        self._templates = Environment(
            loader=PackageLoader("barnabas.console"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters.update(FILTERS)

    def application(self) -> Starlette:
        """Returns the ASGI application."""
        static = StaticFiles(directory=Path(__file__).with_name("static"))
        handlers: dict[Any, Any] = {HTTPException: self._http_problem}
        return Starlette(
            routes=[
                *(Served(each.path, self._answering(each), methods=[each.method]) for each in pages.routes()),
                Served(LOGIN, self._login, methods=["GET", "POST"]),
                Mount("/static", static),
            ],
            exception_handlers=handlers,
        )

    # ------------------------------------------------------------ requests

    def _answering(self, route: Route) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            if not self._access.may_enter(request):
                return self._closed(request)
            form: dict[str, str] = {}
            if route.method == "POST":
                form = await _form(request)
                given = form.pop(FIELD, None) or request.headers.get(HEADER, "")
                if not self._access.may_change(request, given):
                    what = "Load the page again, then repeat what you did: nothing was changed."
                    return self._problem(request, 403, "This form is too old, or of another site.", what)
            page_request = PageRequest(self._sources, request.path_params, dict(request.query_params), form)
            try:
                found = await run_in_threadpool(self._found, route, page_request)
            except _Problem as problem:
                return self._problem(request, *problem.args)
            return self._sent(request, found)

        return answer

    def _found(self, route: Route, page_request: PageRequest) -> Answer:
        from kafka.errors import KafkaError

        from barnabas.cli.client import error_text

        try:
            return route.page(page_request)
        except Missing as error:
            raise _Problem(404, str(error), "Choose one that exists.") from None
        except ValueError as error:
            raise _Problem(400, str(error), "Correct what was given, then try again.") from None
        except click.ClickException as error:
            raise _Problem(409, error.format_message(), "Nothing was changed.") from None
        except KafkaError as error:
            server = self._sources.client.bootstrap_server
            hint = f"Check that a broker answers at {server}, and that you may do this; then load this page again."
            raise _Problem(502, error_text(error), hint) from None

    def _sent(self, request: Request, found: Answer) -> Response:
        if isinstance(found, Moved):
            if request.headers.get("hx-request"):
                return Response(status_code=204, headers={**HEADERS, "hx-redirect": found.address})
            return RedirectResponse(found.address, 303, HEADERS)
        if isinstance(found, Data):
            text = json.dumps(found.content, ensure_ascii=False)
            return Response(text, headers=HEADERS, media_type="application/json")
        return self._page(request, found)

    def _page(self, request: Request, shown: Shown) -> Response:
        session = self._access.session(request)
        is_new, session = session is None, session or self._access.begin()
        values = {
            "server": self._sources.client.bootstrap_server,
            "sources": self._sources,
            "csrf": self._access.form_token(session),
            "base": f"{request.url.scheme}://{request.url.netloc}",
            "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            **shown.values,
        }
        text = self._templates.get_template(shown.template).render(values)
        response = HTMLResponse(text, shown.status, headers=HEADERS)
        if is_new and self._access.may_enter(request):
            self._access.remember(request, response, session)
        return response

    def _problem(self, request: Request, status: int, message: str, hint: str) -> Response:
        template = "problem_part.html" if request.headers.get("hx-request") else "problem.html"
        # htmx swaps in no answer with an error's status: what went wrong would not be seen.
        shown_status = 200 if request.headers.get("hx-request") else status
        return self._page(request, Shown(template, {"message": message, "hint": hint}, shown_status))

    async def _http_problem(self, request: Request, error: HTTPException) -> Response:
        if not self._access.may_enter(request):
            return self._closed(request)
        what = HTTPStatus(error.status_code).phrase
        return self._problem(request, error.status_code, f"{what}: {request.url.path}", "Choose a page above.")

    # ------------------------------------------------------------ login

    def _closed(self, request: Request) -> Response:
        if request.method == "GET" and not request.headers.get("hx-request"):
            return RedirectResponse(login_address(request), 303, HEADERS)
        return Response("Log in first.", 401, headers={**HEADERS, "hx-redirect": LOGIN})

    async def _login(self, request: Request) -> Response:
        then = within(request.query_params.get("then", "/"))
        if self._access.may_enter(request):
            return RedirectResponse(then, 303, HEADERS)
        if request.method == "GET":
            return self._page(request, Shown("login.html", {"is_wrong": False}))
        if not self._access.is_token((await _form(request)).get("token", "").strip()):
            return self._page(request, Shown("login.html", {"is_wrong": True}, 403))
        response = RedirectResponse(then, 303, HEADERS)
        self._access.remember(request, response, self._access.begin())
        return response


class _Problem(Exception):
    """What is shown instead of a page: status, message and hint."""


async def _form(request: Request) -> dict[str, str]:
    """Returns the fields of a form. :raises HTTPException: it is too large, or no form"""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise HTTPException(413)
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=1000)
    except ValueError:
        raise HTTPException(400) from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}
