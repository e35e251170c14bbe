"""The console's ASGI application: the addresses of pages, access to them, and errors as pages.

Knows nothing of the content of pages. Values are escaped by jinja2; the Content-Security-Policy allows only scripts of
the console's own files, none within a page.
"""

import json
import re
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

from barnabas.clock import Clock, SystemClock
from barnabas.console import pages
from barnabas.console.access import FIELD, HEADER, LOGIN, LOGOUT, Access, login_address, within
from barnabas.console.filters import FILTERS
from barnabas.console.lags import Lags
from barnabas.console.page import Answer, Data, Moved, PageRequest, Route, Shown, Sources
from barnabas.console.reading import Client, Missing
from barnabas.console.users import User, Users, WrongPassword

LARGEST_FORM: Final = 4 << 20

_DENIED: Final = re.compile(r"(Topic|Group|Cluster|TransactionalId|DelegationToken)AuthorizationFailed\b")
"""The beginnings of Kafka's names of errors that indicate a missing ACL."""

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


class Console:
    """The pages of one cluster.

    :param token: the password of users; None if only this machine can reach the console
    :param users: the broker's users, each with an own client instead of ``client``
    :param sources: further sources: a schema registry, an admin API, a broker's log directories
    """

    def __init__(
        self, client: Client, token: str | None = None, users: Users | None = None, clock: Clock | None = None,
        **sources: Any,
    ) -> None:  # fmt: skip
        self._sources = Sources(client, Lags(), **sources)
        self._access = Access(token, users, clock or SystemClock())
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
                Served(LOGOUT, self._log_out, methods=["POST"]),
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
                if not self._is_own_form(request, form):
                    return self._old_form(request)
            sources = self._sources_of(self._access.user(request))
            page_request = PageRequest(sources, request.path_params, dict(request.query_params), form)
            try:
                found = await run_in_threadpool(self._found, route, page_request)
            except _Problem as problem:
                return self._problem(request, *problem.args)
            except WrongPassword:  # it has been changed
                response = self._closed(request)
                self._access.end(request, response)
                return response
            return self._sent(request, found)

        return answer

    def _is_own_form(self, request: Request, form: dict[str, str]) -> bool:
        given = form.pop(FIELD, None) or request.headers.get(HEADER, "")
        return self._access.may_change(request, given)

    def _old_form(self, request: Request) -> Response:
        what = "Load the page again, then repeat what you did: nothing was changed."
        return self._problem(request, 403, "This form is too old, or of another site.", what)

    def _sources_of(self, user: User | None) -> Sources:
        if user is None:
            return self._sources
        return self._sources._replace(client=user.client, lags=user.lags, user=user.name)

    def _found(self, route: Route, page_request: PageRequest) -> Answer:
        from kafka.errors import KafkaError

        from barnabas.cli.client import error_text

        try:
            return route.page(page_request)
        except Missing as error:
            raise _Problem(404, str(error), error.hint) from None
        except ValueError as error:
            raise _Problem(400, str(error), "Correct what was given, then try again.") from None
        except click.ClickException as error:
            text = error.format_message()
            if _DENIED.match(text):
                raise self._denied(page_request, text) from None
            hint = "Load this page again." if route.method == "GET" else "Nothing was changed."
            raise _Problem(409, text, hint) from None
        except KafkaError as error:
            if _DENIED.match(error_text(error)):
                raise self._denied(page_request, error_text(error)) from None
            server = self._sources.client.bootstrap_server
            hint = f"Check that a broker answers at {server}, and that you may do this; then load this page again."
            raise _Problem(502, error_text(error), hint) from None

    def _denied(self, page_request: PageRequest, text: str) -> "_Problem":
        who = f"The user {page_request.sources.user}" if page_request.sources.user else "The console's client"
        return _Problem(403, f"{who} may not do this. {text}", "An ACL has to allow it. Nothing was changed.")

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
            "sources": self._sources_of(self._access.user(request)),
            "has_login": self._access.has_login,
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
        # htmx does not show responses with the status of an error.
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
            return self._login_page(request)
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return self._login_page(request, "This form is of another site. Log in here.", 403)
        try:
            session = await self._new_session(await _form(request))
        except _Problem as problem:
            status, message, hint = problem.args
            return self._login_page(request, f"{message} {hint}", status)
        response = RedirectResponse(then, 303, HEADERS)
        self._access.remember(request, response, session)
        return response

    async def _new_session(self, form: dict[str, str]) -> str:
        """Returns the name of a new session. :raises _Problem: the login is refused"""
        from kafka.errors import KafkaError

        from barnabas.cli.client import error_text

        if self._access.users is None:
            if not self._access.is_token(form.get("token", "").strip()):
                raise _Problem(403, "This is not the token.", "It is what the console was started with.")
            return self._access.begin()
        try:
            user = await run_in_threadpool(self._access.users.log_in, form.get("user", ""), form.get("password", ""))
        except WrongPassword:
            raise _Problem(403, "The broker refuses this user with this password.", "Try again.") from None
        except KafkaError as error:
            raise _Problem(502, error_text(error), "No broker answers: try again later.") from None
        return self._access.begin(user)

    def _login_page(self, request: Request, problem: str = "", status: int = 200) -> Response:
        has_users = self._access.users is not None
        return self._page(request, Shown("login.html", {"problem": problem, "has_users": has_users}, status))

    async def _log_out(self, request: Request) -> Response:
        if not self._is_own_form(request, await _form(request)):
            return self._old_form(request) if self._access.may_enter(request) else self._closed(request)
        response = RedirectResponse(LOGIN if self._access.has_login else "/", 303, HEADERS)
        self._access.end(request, response)
        return response


class _Problem(Exception):
    """A problem that is shown instead of a page: status, message and hint."""


async def _form(request: Request) -> dict[str, str]:
    """Returns the fields of a form. :raises HTTPException: it is too large, or not a form"""
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
