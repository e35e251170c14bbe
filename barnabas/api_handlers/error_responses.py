"""Error responses: the response to a request that has failed as a whole, in the shape of its API.

Knows nothing of handlers, and of an API only its schema. A shape that does not follow from the schema is registered by
the module of the API, with :func:`error_shape`. Corresponds to Apache Kafka's
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
"""The functions that build the error responses of a request, if its module has registered one."""

ERROR_CODES: Final = ("error_code", "partition_error_code")

KEYS: Final = frozenset({
    "group_id", "index", "name", "partition", "partition_index", "producer_id", "resource_name", "resource_type",
    "topic", "topic_id", "topic_name",
})  # fmt: skip
"""Fields that identify an entry of a response, and have the same name in the request."""

PARTITION: Final = ("partition", "partition_index", "index")
"""Names of the partition, which may have another one in the request than in the response."""


def error_shape(request: type[Request]) -> Callable[[S], S]:
    """Registers the decorated function, which builds the error responses to ``request``.

    The function takes the request, the error and the version, and returns the response. It may raise
    :class:`CloseConnection` if there is none.
    """

    def register(shape: S) -> S:
        assert request not in SHAPES, f"{request.__name__} has two shapes"
        SHAPES[request] = shape
        return shape

    return register


def error_response(request: Request, error: KafkaError, version: int) -> Response:
    """Returns the response to a request that has failed as a whole.

    :raises CloseConnection: the response has no error code in that version
    """
    response: Response = shaped(request, error, version)
    if not has_error(response, version):
        raise CloseConnection(f"{type(request).__name__} version {version} has no place for the error: {error}")
    return response


def shaped(request: Request, error: KafkaError, version: int) -> Any:
    """Returns the response with the error in each of its error codes, even if it has none."""
    _ = APIS[request.api_key].handle  # imports the module, which registers its shape
    return SHAPES.get(type(request), derived)(request, error, version)


def resolve_with_error(later: Later[Any], request: Request, error: KafkaError, version: int) -> None:
    """Resolves a later response with the error response. If there is none, the connection is closed."""
    try:
        response = error_response(request, error, version)
    except CloseConnection as reason:
        later.resolve(reason)
    else:
        later.resolve(response)


def derived(
    request: Request, error: KafkaError, version: int, *, in_entries: bool = False, **values: object
) -> Response:
    """Returns the error response that follows from the schema.

    The error is in the response's own error code if it has one in that version. Otherwise the response has an entry for
    each topic, partition, group or resource of the request, and the error is in the outermost that has an error code.

    :param in_entries: whether the innermost entries have the error, too, if what holds them has an error code
    :param values: values of fields by name, in the response and in its entries, instead of the defaults
    """
    builder = _Builder(error, version, values, in_entries=in_entries)
    response: Response = builder.struct(type(request).response)
    if in_entries or builder.error_code(type(response)) is None:
        builder.fill(response, request)
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


class _Builder:
    """Builds the structures of an error response, for one error in one version."""

    def __init__(self, error: KafkaError, version: int, values: dict[str, object], *, in_entries: bool) -> None:
        self._error = error
        self._version = version
        self._values = values
        self._in_entries = in_entries

    def fields(self, kind: type[Struct]) -> list[Field]:
        return [field for field in kind.wire_fields() if self._version in field.versions]

    def error_code(self, kind: type[Struct]) -> str | None:
        return next((field.name for field in self.fields(kind) if field.name in ERROR_CODES), None)

    def struct(self, kind: Any) -> Any:
        """Returns a structure with the error, if it has an error code, and defaults."""
        built: dict[str, object] = {}
        for field in kind.wire_fields():
            if field.name in self._values:
                built[field.name] = self._values[field.name]
            elif field.name == "error_message":
                built[field.name] = str(self._error)
            elif field.default is MISSING:
                built[field.name] = _empty(field)
        code = self.error_code(kind)
        return kind(**built) if code is None else kind(**{**built, code: self._error.code})

    def fill(self, response: Struct, request: Struct) -> None:
        """Adds an entry to the response for each entry of the request.

        The first array of the request corresponds to the first array of the response that has error codes.
        """
        to_fill = next((field for field in self.fields(type(response)) if self._can_fail(field)), None)
        requested = next((field for field in self.fields(type(request)) if field.is_array), None)
        if to_fill is not None and requested is not None:
            entries = getattr(request, requested.name) or ()
            setattr(response, to_fill.name, [self._entry(to_fill.kind, each, requested.kind) for each in entries])

    def _can_fail(self, field: Field) -> bool:
        """Returns whether the field is an array whose entries have an error code, or entries that have one."""
        kind = field.kind
        if not field.is_array or not isinstance(kind, type):
            return False
        return self.error_code(kind) is not None or any(self._can_fail(each) for each in self.fields(kind))

    def _entry(self, kind: Any, requested: Any, requested_kind: Any) -> Any:
        """Returns the response's entry for one of the request's, which is a structure or a mere key."""
        built = self.struct(kind)
        if not isinstance(requested, Struct):
            keys = (each.name for each in kind.wire_fields() if each.kind == requested_kind)
            setattr(built, next(name for name in keys if not name.startswith("error")), requested)
            return built
        for name in KEYS.intersection(each.name for each in self.fields(kind)):
            if hasattr(requested, name):
                setattr(built, name, getattr(requested, name))
        places = [name for name in PARTITION if hasattr(requested, name)]
        for name in PARTITION:
            if places and hasattr(built, name):
                setattr(built, name, getattr(requested, places[0]))
        code = self.error_code(kind)
        if code is None or self._in_entries:
            self.fill(built, requested)
        if code is not None and self._in_entries and self._holds_errors(built):
            setattr(built, code, 0)
        return built

    def _holds_errors(self, entry: Struct) -> bool:
        return any(bool(getattr(entry, field.name)) for field in self.fields(type(entry)) if self._can_fail(field))


def _empty(field: Field) -> object:
    """Returns the empty value of a field without a default."""
    if field.is_array:
        return []
    if not isinstance(field.kind, type):
        return field.kind.default
    return field.kind(**{each.name: _empty(each) for each in field.kind.wire_fields() if each.default is MISSING})
