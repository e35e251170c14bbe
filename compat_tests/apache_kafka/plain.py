"""Converts plain values to requests, and responses to plain values, so that two brokers can be compared.

Knows nothing of any API.
"""

from collections.abc import Collection
from typing import Any

from barnabas.errors import ClusterAuthorizationFailed
from barnabas.wire.message import Request
from barnabas.wire.messages import declared
from barnabas.wire.schema import MISSING, Struct

MESSAGES = declared()
#: What differs from run to run.
LEFT_OUT = {
    "topic_id", "throttle_time_ms", "port", "leader_epoch", "high_watermark", "log_end_offset", "replica_directory_id",
    "last_fetch_timestamp", "last_caught_up_timestamp", "cluster_id", "controller_id", "configs",
    "token_id", "hmac", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms",
}  # fmt: skip
DEFAULT_TIMEOUT = {"timeout_ms": 10_000}


def made(kind: type[Struct], version: int, values: dict[str, Any]) -> Any:
    """Returns a structure of plain values; missing fields are empty."""
    fields = {}
    for field in kind.wire_fields():
        value = values.get(field.name, field.default)
        if value is MISSING:
            value = [] if field.is_array else getattr(field.kind, "default", None)
        if isinstance(field.kind, type) and isinstance(value, list | dict):
            inner = field.kind
            value = (
                [made(inner, version, each) for each in value]
                if isinstance(value, list)
                else made(inner, version, value)
            )
        fields[field.name] = value
    assert not values.keys() - fields.keys(), f"{kind.__name__} has no {values.keys() - fields.keys()}"
    return kind(**fields)


def comparable(response: Any, left_out: Collection[str] = LEFT_OUT) -> Any:
    """Returns a response's values, without what differs from run to run, and sorted."""
    if response is None:
        return "closed"
    said = {}
    for field in response.wire_fields():
        value = getattr(response, field.name)
        if field.name in left_out:
            continue
        if field.is_array and isinstance(field.kind, type) and value is not None:
            value = sorted((comparable(each, left_out) for each in value), key=repr)
        value = comparable(value, left_out) if isinstance(value, Struct) else value
        said[field.name] = bytes(value) if isinstance(value, memoryview) else value
    if (said.get("error_message") or "").startswith("Request Request("):
        said["error_message"] = str(ClusterAuthorizationFailed())  # the text has the memory of the request
    return said


def request_of(name: str, version: int, values: dict[str, Any]) -> Request:
    kind = MESSAGES[f"{name}Request"]
    has_timeout = any(field.name == "timeout_ms" for field in kind.wire_fields())
    request = made(kind, version, {**(DEFAULT_TIMEOUT if has_timeout else {}), **values})
    assert isinstance(request, Request)
    return request
