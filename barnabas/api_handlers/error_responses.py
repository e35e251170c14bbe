"""Placeholder until the server branch lands."""

from typing import Any

from barnabas.errors import KafkaError
from barnabas.wire.message import Request
from barnabas.wire.schema import Field
from barnabas.wire.types import MISSING


def error_response(request: Request, error: KafkaError, version: int) -> Any:
    response = type(request).response
    fields = {field.name: field for field in response.wire_fields()}
    if "error_code" not in fields:
        raise error
    values = {name: empty(field) for name, field in fields.items() if field.default is MISSING}
    values["error_code"] = error.code
    if "error_message" in fields:
        values["error_message"] = str(error)
    return response(**values)


def empty(field: Field) -> Any:
    if field.is_array:
        return []
    return field.kind() if isinstance(field.kind, type) else field.kind.default
