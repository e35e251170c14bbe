"""A request to the registry, as endpoints read it.

Knows nothing of what endpoints do.
"""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from barnabas.registry.errors import RegistryError, error
from barnabas.registry.registry import Registry
from barnabas.registry.store import Content
from barnabas.registry.subjects import within

T = TypeVar("T")


class RegistryRequest:
    """One request.

    :param context: of the path, ``/contexts/.staging/subjects``; subjects without a context are in it
    """

    def __init__(self, registry: Registry, request: Request, values: dict[str, str], context: str) -> None:
        self.registry = registry
        self.http = request
        self._values = values
        self.context = context

    def path(self, name: str) -> str:
        return self._values[name]

    @property
    def subject(self) -> str:
        """The subject of the path. Its context may be that of the path."""
        return within(self._values["subject"], self.context)

    @property
    def subject_or_none(self) -> str | None:
        """The subject of the path; None if it has none, which stands for all subjects."""
        if "subject" in self._values:
            subject = self.subject
            return None if subject in ("", ":.:") else subject
        return within("", self.context) or None

    def query(self, name: str, default: str = "") -> str:
        return self.http.query_params.get(name, default)

    def switch(self, name: str) -> bool:
        return self.query(name).lower() == "true"

    def whole(self, name: str, default: int) -> int:
        """Returns a number of the query. :raises RegistryError: it is none"""
        try:
            return int(self.query(name, str(default)))
        except ValueError:
            raise RegistryError(404, "HTTP 404 Not Found") from None

    def page(self, found: Sequence[T]) -> list[T]:
        """Returns the part that ``offset`` and ``limit`` select."""
        first, limit = max(self.whole("offset", 0), 0), self.whole("limit", -1)
        return list(found[first:] if limit < 0 else found[first : first + limit])

    @property
    def prefix(self) -> str:
        """What the names of subjects begin with; by default all of the context, or of all contexts."""
        everywhere = within("", self.context) or ":*:"
        return within(self.query("subjectPrefix", everywhere), self.context)

    async def body(self) -> dict[str, Any]:
        """Returns the body. :raises RegistryError: it is not a JSON object"""
        try:
            found = json.loads(await self.http.body())
        except ValueError as why:
            raise RegistryError(400, f"The body is no JSON: {why}") from None
        if not isinstance(found, dict):
            raise error("unprocessable", "The body has to be an object")
        return found

    @staticmethod
    def content(body: dict[str, Any]) -> Content:
        """Returns the schema of a body. :raises RegistryError: there is none"""
        if not body.get("schema"):
            raise error("invalid_schema", "it is empty")
        try:
            return Content.of(body)
        except (KeyError, TypeError, ValueError, AttributeError) as why:
            raise error("unprocessable", f"The fields of a schema are not as they have to be: {why}") from None
