"""The one place where an API meets the function that answers it; what stands here is what ApiVersions promises.

Knows nothing of what any API means.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from barnabas.wire.message import Request
from barnabas.wire.schema import Versions

Handler = Callable[[Any, Any], Any]
H = TypeVar("H", bound=Handler)


class Api(NamedTuple):
    """An API that this broker answers."""

    request: type[Request]
    versions: Versions  #: what is answered, and what clients are told
    handle: Handler
    changes_metadata: bool = False  #: its answers wait until what they say is on the disk


APIS: dict[int, Api] = {}


class Promise(NamedTuple):
    """What the clients of a broker are told of, and are answered."""

    apis: Mapping[int, Api] = APIS
    release: str | None = None  #: of Apache Kafka, which the broker is to look like; None: its newest


def api(request: type[Request], *, versions: str, changes_metadata: bool = False) -> Callable[[H], H]:
    """Register the function below as the one that answers ``request`` in ``versions``, ends included.

    The function takes the request and a :class:`~barnabas.api_handlers.context.Context`, and returns the response, a
    :class:`~barnabas.api_handlers.answering.Later`, or None where the protocol has no answer.
    """
    promised = Versions.parse(versions)
    assert promised.first in request.versions and promised.last in request.versions, (
        f"{request.__name__} is not declared for {versions}"
    )

    def register(handle: H) -> H:
        assert request.api_key not in APIS, f"{request.__name__} is answered twice"
        APIS[request.api_key] = Api(request, promised, handle, changes_metadata)
        return handle

    return register
