"""Who may use the console: a session in a cookie, and a token in each form against requests of other sites.

Knows nothing of what the pages show. Nothing is kept: cookies and tokens are signed with a key of this process. The
cookie is SameSite=Strict and named by the port, because browsers share the cookies of a host between its ports.
"""

import hmac
import secrets
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

LOGIN: Final = "/login"
FIELD: Final = "csrf"
"""The field of forms, and the header of htmx, with the token."""

HEADER: Final = "x-csrf"
LASTS_S: Final = 12 * 3600


class Access:
    """The sessions of one console.

    :param token: what users must know; None where only this machine reaches the console
    """

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._key = secrets.token_bytes(32)

    def _signed(self, text: str) -> str:
        return hmac.digest(self._key, text.encode(), "sha256").hex()

    def is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _has_bearer(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(given.strip())

    def session(self, request: Request) -> str | None:
        """Returns the name of the request's session; None if it has none that this process has begun."""
        name, _, signature = request.cookies.get(_cookie(request), "").partition(".")
        return name if name and hmac.compare_digest(signature, self._signed(f"session {name}")) else None

    def begin(self) -> str:
        """Returns the name of a new session."""
        return secrets.token_urlsafe(18)

    def remember(self, request: Request, response: Response, session: str) -> None:
        """Has the browser send the session with its next requests."""
        value = f"{session}.{self._signed(f'session {session}')}"
        response.set_cookie(_cookie(request), value, max_age=LASTS_S, httponly=True, samesite="strict", path="/")

    def may_enter(self, request: Request) -> bool:
        """Returns whether the request may see pages."""
        return self._token is None or self.session(request) is not None or self._has_bearer(request)

    def form_token(self, session: str) -> str:
        """Returns what forms of a session have to send."""
        return self._signed(f"form {session}")

    def may_change(self, request: Request, given: str) -> bool:
        """Returns whether a POST was sent from a page of this console, or by a program that has the token."""
        if self._has_bearer(request):
            return True  # a browser adds no such header for pages of other sites
        session = self.session(request)
        return session is not None and hmac.compare_digest(given, self.form_token(session))


def _cookie(request: Request) -> str:
    return f"barnabas_console_{request.url.port or 80}"


def login_address(request: Request) -> str:
    """Returns the address of the login, which leads to the requested page."""
    where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"{LOGIN}?then={quote(where, safe='')}"


def within(address: str) -> str:
    """Returns an address of this console; the first page instead of any other site's."""
    is_own = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_own else "/"
