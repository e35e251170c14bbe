"""The access to the console: a session in a cookie, and a token in each form against requests of other sites.

Knows nothing of the pages. Cookies and tokens are signed with a key of this process; its only state is the users who
have logged in, if these are the broker's. The cookie is SameSite=Strict, and its name has the port, because browsers
share the cookies of a host between its ports.
"""

import hmac
import secrets
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from barnabas.clock import Clock
from barnabas.console.users import User, Users

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
FIELD: Final = "csrf"
"""The name of the form field, and of htmx's header, with the token."""

HEADER: Final = "x-csrf"
LASTS_S: Final = 12 * 3600
MOST_USERS: Final = 1000
"""The maximum number of sessions of users; the oldest is ended if there are more."""


class Access:
    """The sessions of one console.

    :param token: the password of users; None if only this machine can reach the console
    :param users: the broker's users, who log in instead
    """

    def __init__(self, token: str | None, users: Users | None, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._users: dict[str, User] = {}  # by session
        self.users = users

    def _signed(self, text: str) -> str:
        return hmac.digest(self._key, text.encode(), "sha256").hex()

    def is_token(self, given: str) -> bool:
        return self._token is not None and _equal(given, self._token)

    def _has_bearer(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(given.strip())

    def session(self, request: Request) -> str | None:
        """Returns the name of the request's session; None if it has none of this process, or it has expired."""
        name, _, signature = request.cookies.get(_cookie(request), "").partition(".")
        if not name or not _equal(signature, self._signed(f"session {name}")):
            return None
        return name if int(name.partition("-")[0]) > self._clock.monotonic() else None

    def user(self, request: Request) -> User | None:
        """Returns the broker's user of the session."""
        return self._users.get(self.session(request) or "")

    def begin(self, user: User | None = None) -> str:
        """Begins a session and returns its name, which has its expiry and a random part."""
        now = int(self._clock.monotonic())
        name = f"{now + LASTS_S}-{secrets.token_urlsafe(18)}"
        if user is not None:
            over = [each for each in self._users if int(each.partition("-")[0]) <= now]
            for each in over or list(self._users)[: len(self._users) - MOST_USERS + 1]:
                del self._users[each]
            self._users[name] = user
        return name

    def remember(self, request: Request, response: Response, session: str) -> None:
        """Sets the cookie of the session."""
        value = f"{session}.{self._signed(f'session {session}')}"
        response.set_cookie(
            _cookie(request), value, max_age=LASTS_S, httponly=True, samesite="strict", secure=_is_https(request),
            path="/",
        )  # fmt: skip

    def end(self, request: Request, response: Response) -> None:
        """Ends the request's session."""
        self._users.pop(self.session(request) or "", None)
        response.delete_cookie(
            _cookie(request), httponly=True, samesite="strict", secure=_is_https(request), path="/"
        )  # fmt: skip

    @property
    def has_login(self) -> bool:
        """Whether users have to log in."""
        return self._token is not None or self.users is not None

    def may_enter(self, request: Request) -> bool:
        """Returns whether the request may see pages."""
        if self.users is not None:
            return self.user(request) is not None
        return self._token is None or self.session(request) is not None or self._has_bearer(request)

    def form_token(self, session: str) -> str:
        """Returns the token of a session's forms."""
        return self._signed(f"form {session}")

    def may_change(self, request: Request, given: str) -> bool:
        """Returns whether a POST comes from a page of this console, or from a program with the token."""
        if self._has_bearer(request):
            return True  # a browser adds no such header for pages of other sites
        session = self.session(request)
        return session is not None and _equal(given, self.form_token(session))


def _equal(given: str, wanted: str) -> bool:
    """Compares texts in constant time, as bytes, since `given` may not be ASCII."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def _is_https(request: Request) -> bool:
    """Returns whether the browser uses TLS, to this process or to a proxy before it."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").lower())


def _cookie(request: Request) -> str:
    return f"barnabas_console_{request.url.port or 80}"


def login_address(request: Request) -> str:
    """Returns the address of the login page, which redirects to the requested page."""
    where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"{LOGIN}?then={quote(where, safe='')}"


def within(address: str) -> str:
    """Returns an address of this console; the first page instead of another site's address."""
    is_own = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_own else "/"
