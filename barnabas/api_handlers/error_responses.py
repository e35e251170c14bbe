"""Error responses: the answer to a request as a whole, in the shape that its API has for errors.

Knows nothing of handlers, and of an API only what its messages declare. A shape that the declarations do not tell is
registered by the API's own module, with :func:`error_shape`. Corresponds to Apache Kafka's
``AbstractRequest.getErrorResponse``.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.registry import APIS
from barnabas.errors import CloseConnection, KafkaError
from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Field, Struct
from barnabas.wire.types import MISSING

Shape = Callable[[Any, KafkaError, int], Response]
S = TypeVar("S", bound=Shape)

SHAPES: dict[type[Request], Shape] = {}
"""What makes the error responses to a request, where its module has registered that."""

ERROR_CODES: Final = ("error_code", "partition_error_code")

KEYS: Final = frozenset({
    "group_id", "index", "name", "partition", "partition_index", "producer_id", "resource_name", "resource_type",
    "topic", "topic_id",
})  # fmt: skip
"""Fields that say what an entry of a response is about, where they have the same name in the request."""


def error_shape(request: type[Request]) -> Callable[[S], S]:
    """Registers the function below as what makes the error responses to ``request``.

    The function takes the request, the error and the version, and returns the response. It may raise
    :class:`CloseConnection` where there is none.
    """

    def register(shape: S) -> S:
        assert request not in SHAPES, f"{request.__name__} has two shapes"
        SHAPES[request] = shape
        return shape

    return register


def error_response(request: Request, error: KafkaError, version: int) -> Response:
    """Returns the response which says that all of ``request`` has failed with ``error``.

    :raises CloseConnection: a response to this request has no place for an error in that version
    """
    _ = APIS[request.api_key].handle  # imports the module, which registers its shape
    response: Response = SHAPES.get(type(request), derived)(request, error, version)
    if not has_error(response, version):
        raise CloseConnection(f"{type(request).__name__} version {version} has no place for the error: {error}")
    return response


def resolve_with_error(later: Later[Any], request: Request, error: KafkaError, version: int) -> None:
    """Resolves a later answer with the error response; where there is none, the connection is closed."""
    try:
        response = error_response(request, error, version)
    except CloseConnection as reason:
        later.resolve(reason)
    else:
        later.resolve(response)


def derived(
    request: Request, error: KafkaError, version: int, *, in_entries: bool = False, **values: object
) -> Response:
    """Returns the error response as far as the declarations tell it.

    The error is in the response's own error code if it has one in that version. Otherwise the response has an entry for
    each topic, partition, group or resource of the request, and the error is in the outermost that has an error code.

    :param in_entries: whether there are entries with the error where the response has an error code of its own, too
    :param values: what fields of these names have, in the response and in its entries, where a default would be wrong
    """
    making = _Making(error, version, values)
    response: Response = making.struct(type(request).response)
    if in_entries or making.error_code(type(response)) is None:
        making.fill(response, request)
    return response


def has_error(response: Struct, version: int) -> bool:
    """Returns whether an error code in ``response`` is not 0, in a field that the version has."""
    for field in response.wire_fields():
        if version in field.versions:
            value = getattr(response, field.name)
            if field.name in ERROR_CODES and value != 0:
                return True
            if field.is_array and any(isinstance(each, Struct) and has_error(each, version) for each in value or ()):
                return True
    return False


class _Making:
    """One error, in one version."""

    def __init__(self, error: KafkaError, version: int, values: dict[str, object]) -> None:
        self._error = error
        self._version = version
        self._values = values

    def fields(self, kind: type[Struct]) -> list[Field]:
        return [field for field in kind.wire_fields() if self._version in field.versions]

    def error_code(self, kind: type[Struct]) -> str | None:
        return next((field.name for field in self.fields(kind) if field.name in ERROR_CODES), None)

    def struct(self, kind: Any) -> Any:
        """Returns a structure that holds nothing but the error, if it has a place for it."""
        made: dict[str, object] = {}
        for field in kind.wire_fields():
            if field.name in self._values:
                made[field.name] = self._values[field.name]
            elif field.name == "error_message":
                made[field.name] = str(self._error)
            elif field.default is MISSING:
                made[field.name] = _empty(field)
        code = self.error_code(kind)
        return kind(**made) if code is None else kind(**{**made, code: self._error.code})

    def fill(self, response: Struct, request: Struct) -> None:
        """Adds an entry to the response for each entry of the request.

        The request's first array and the first one of the response that has a place for errors are about the same.
        """
        told = next((field for field in self.fields(type(response)) if self._can_fail(field)), None)
        asked = next((field for field in self.fields(type(request)) if field.is_array), None)
        if told is not None and asked is not None:
            entries = getattr(request, asked.name) or ()
            setattr(response, told.name, [self._entry(told.kind, each, asked.kind) for each in entries])

    def _can_fail(self, field: Field) -> bool:
        """Returns whether the field is an array whose entries have an error code, or entries that have one."""
        kind = field.kind
        if not field.is_array or not isinstance(kind, type):
            return False
        return self.error_code(kind) is not None or any(self._can_fail(each) for each in self.fields(kind))

    def _entry(self, kind: Any, asked: Any, kind_asked: Any) -> Any:
        """Returns the response's entry for one of the request's, which is a structure or nothing but a key."""
        made = self.struct(kind)
        if not isinstance(asked, Struct):
            keys = (each.name for each in kind.wire_fields() if each.kind == kind_asked)
            setattr(made, next(name for name in keys if not name.startswith("error")), asked)
            return made
        for name in KEYS.intersection(each.name for each in self.fields(kind)):
            if hasattr(asked, name):
                setattr(made, name, getattr(asked, name))
        if self.error_code(kind) is None:
            self.fill(made, asked)
        return made


def _empty(field: Field) -> object:
    """Returns what a field has about which there is nothing to say."""
    if field.is_array:
        return []
    return field.kind() if isinstance(field.kind, type) else field.kind.default
