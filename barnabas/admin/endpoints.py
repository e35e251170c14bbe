"""Endpoints of the admin API: each is a function, with its description for the OpenAPI document.

Knows nothing of what endpoints do.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from barnabas.testing.controls import Controls

Schema = Mapping[str, Any]

ANY: Final[Schema] = {}
TEXT: Final[Schema] = {"type": "string"}
TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
SWITCH: Final[Schema] = {"type": "boolean"}


def array(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def fields(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """Returns the schema of an object."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


class Refused(Exception):
    """The request cannot be carried out.

    :param status: of the answer
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def known(what: str, given: Iterable[str], names: Iterable[str]) -> None:
    """Refuses names that mean nothing: without them, the request would do something else than it says.

    :raises Refused: a name is none of ``names``
    """
    if unknown := sorted(set(given) - set(names)):
        raise Refused(400, f"there is no {what} {', '.join(unknown)}; there is {', '.join(names) or 'none'}")


class AdminRequest:
    """A request, as endpoints read it."""

    def __init__(self, controls: Controls, request: Request) -> None:
        self.controls = controls
        self.http = request

    def path(self, name: str) -> str:
        return str(self.http.path_params[name])

    def query(self, name: str) -> str | None:
        return self.http.query_params.get(name)

    def whole(self, name: str) -> int | None:
        """Returns a whole number of the query. :raises Refused: it is none"""
        text = self.query(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise Refused(400, f"{name} is {text!r}, but must be a whole number") from None

    def switch(self, name: str) -> bool:
        """Returns whether the query has ``name`` or ``name=true``."""
        return self.query(name) in ("", "true", "1")

    async def json(self) -> Any:
        """Returns the parsed body. :raises Refused: it is not JSON"""
        try:
            return await self.http.json()
        except ValueError as error:
            raise Refused(400, f"the body is no JSON: {error}") from None

    async def fields(self, *names: str) -> dict[str, Any]:
        """Returns the body, an object; without a body, an empty one.

        :param names: the fields that it may have; without any, the caller looks at them itself
        :raises Refused: it is something else, or has another field
        """
        found = await self.json() if await self.http.body() else {}
        if not isinstance(found, dict):
            raise Refused(400, "the body has to be a JSON object")
        if names:
            known("field", found, names)
        return found


Answer = Response | dict[str, Any] | list[Any] | None
"""None is an answer without a body."""


class Endpoint(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    answer: Callable[[AdminRequest], Awaitable[Answer]]
    summary: str
    query: Mapping[str, tuple[Schema, str]] = {}  #: schema and meaning
    body: Schema | None = None
    body_types: tuple[str, ...] = ("application/json",)
    answers: Schema | None = None  #: None is an answer without a body
    answer_type: str = "application/json"
    status: int = 200
