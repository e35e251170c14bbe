"""A page of the console: a function of a request that returns a template with its values, data, or another address.

Knows nothing of the pages, nor of ASGI. Pages block: the application calls them in threads.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.console.lags import Lags
from barnabas.console.reading import Client
from barnabas.log.limits import MAX_OFFSET


class Sources(NamedTuple):
    """The sources of the pages' data."""

    client: Client
    lags: Lags
    registry: str | None = None  #: URL of a schema registry
    admin_api: str | None = None  #: URL of the admin API of a broker for tests
    admin_token: str | None = None
    user: str = ""  #: the broker's user who has logged in
    log_dirs: tuple[str, ...] = ()  #: of a broker on this machine; empty if its files cannot be listed


class PageRequest(NamedTuple):
    """One request to a page."""

    sources: Sources
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = {}  #: the fields of a POST

    def text(self, name: str, default: str = "") -> str:
        """Returns a field of the form or of the query, without the space around it."""
        return (self.form if name in self.form else self.query).get(name, default).strip()

    def whole(self, name: str, default: int = 0) -> int:
        """Returns a number of 0 or more. :raises ValueError: the text is not such a number"""
        text = self.text(name)
        if not text:
            return default
        if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > MAX_OFFSET:
            raise ValueError(f"{name} is {text!r}, but must be a number from 0 on.")
        return int(text)


class Shown(NamedTuple):
    """A template with its values."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


class Moved(NamedTuple):
    """A redirect to another address, as the response to a change."""

    address: str


class Data(NamedTuple):
    """A response in JSON, for programs."""

    content: Any


Answer = Shown | Moved | Data
Page = Callable[[PageRequest], Answer]


class Route(NamedTuple):
    """The address of a page."""

    path: str
    page: Page
    method: str = "GET"


Routes = Sequence[Route]
