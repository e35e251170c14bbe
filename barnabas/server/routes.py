"""The versions of APIs that one listener answers, each with the function that handles its requests.

Knows nothing of frames or connections, nor of what an API does. The connections of a listener share its routes.
"""

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.api_handlers.handling import Handle, handle
from barnabas.api_handlers.registry import Api

VERSION_BITS: Final = 16
"""Bits of a route's number that are the version of the API: the number is the first four bytes of a request."""


class Route:
    """One version of an API."""

    __slots__ = ("api", "handle", "request")

    def __init__(self, api: Api, handle: Handle) -> None:
        self.api = api
        self.request = api.request  #: the class of its requests
        self.handle = handle


class Routes:
    """The routes of one listener. A version has one from its first request on.

    :param apis: the APIs that the listener answers, by key
    """

    def __init__(self, apis: Mapping[int, Api]) -> None:
        self.apis = apis
        self.by_number: dict[int, Route] = {}
        #: Returns the function that handles a version of an API. Metrics replace it before the first request.
        self.new_handle: Callable[[Api, int], Handle] = lambda api, version: handle

    def add(self, api: Api, version: int) -> None:
        """Adds the route of a version, which the API has."""
        self.by_number[(api.key << VERSION_BITS) + version] = Route(api, self.new_handle(api, version))
