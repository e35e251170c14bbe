"""Puts an error into a response: at the top level, or into the entries that a rule matches.

Knows nothing of APIs but their schemas; APIs whose error responses do not follow from the schema have them in
:mod:`barnabas.api_handlers.error_responses`.
"""

from typing import Any, Final

from barnabas.api_handlers.error_responses import ERROR_CODES, SHAPES, derived, has_error, shaped
from barnabas.errors import KafkaError
from barnabas.faults.subjects import TOPIC_ARRAYS, TopicName, Wanted, fields_of, partition_of, topic_of
from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, Versions

KEYS: Final = ("name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "partition_index")
"""Fields that tell entries of arrays apart that hold others."""


def has_place(request: type[Request], versions: Versions) -> bool:
    """Returns whether responses have an error code in one of these versions."""
    return any(
        field.name in ERROR_CODES and field.versions.first <= versions.last and versions.first <= field.versions.last
        for field in fields_of(request.response)
    )


def error_answer(request: Request, error: KafkaError, version: int) -> Response | None:
    """Returns the response with the error for everything that the request names; None if that version has no error
    code.

    :raises CloseConnection: the protocol has no response to the request
    """
    response: Response = shaped(request, error, version)
    return response if has_error(response, version) else None


def entries_answer(request: Request, error: KafkaError, version: int) -> Response:
    """Returns the response with the error in each entry, and none at the top level unless the entries have no error
    code.

    :raises CloseConnection: the protocol has no response to the request
    """
    response: Response = shaped(request, error, version)
    is_of_groups = bool(getattr(response, "groups", None))  # each of which has an error code of its own
    if type(request) in SHAPES and not is_failed(response) and not is_of_groups:
        return response
    of_entries = derived(request, error, version, in_entries=True)
    for name in ERROR_CODES:
        if hasattr(of_entries, name):
            setattr(of_entries, name, 0)
    return of_entries if has_error(of_entries, version) else response


def is_failed(response: Response) -> bool:
    """Returns whether a response has an error at the top level."""
    return any(getattr(response, name, 0) for name in ERROR_CODES)


def mark(response: Struct, error: KafkaError, version: int) -> bool:
    """Sets the outermost error codes of a response. Returns whether it has any."""
    fields = [field for field in response.wire_fields() if version in field.versions]
    code = next((field.name for field in fields if field.name in ERROR_CODES), None)
    if code is not None:
        setattr(response, code, error.code)
        return True
    marked = False
    for field in fields:
        if field.is_array and isinstance(field.kind, type):
            for each in getattr(response, field.name) or ():
                marked = mark(each, error, version) or marked
    return marked


def mark_entries(
    structure: Struct,
    wanted: Wanted,
    error: KafkaError,
    version: int,
    topic_name: TopicName,
    *,
    whole_topics: bool,
    topic: str | None = None,
) -> None:
    """Sets the error codes of those topics and partitions that are wanted.

    :param whole_topics: whether to set only the topic's own error code, where it has one
    """
    for field in structure.wire_fields():
        if not field.is_array or not isinstance(field.kind, type) or version not in field.versions:
            continue
        has_code = any(each.name in ERROR_CODES and version in each.versions for each in field.kind.wire_fields())
        for each in getattr(structure, field.name) or ():
            own = topic_of(each, topic_name, is_topic=field.name in TOPIC_ARRAYS) or topic
            partition = partition_of(each)
            if own is None or (partition is None and not (has_code and whole_topics)):
                mark_entries(each, wanted, error, version, topic_name, whole_topics=whole_topics, topic=own)
            elif wanted(own, partition):
                mark(each, error, version)


def merged(response: Any, other: Any) -> None:
    """Adds the entries of ``other`` to a response; a topic that both have gets the partitions of both, and a partition
    the records.
    """
    for field in response.wire_fields():
        entries, more = getattr(response, field.name), getattr(other, field.name)
        if field.name == "records" and more:
            setattr(response, field.name, bytes(entries or b"") + bytes(more))
        if not field.is_array or not more:
            continue
        entries = list(entries or ())
        for each in more:
            same = next((one for one in entries if _is_same(one, each)), None)
            if same is None:
                entries.append(each)
            else:
                merged(same, each)
        setattr(response, field.name, entries)


def _is_same(one: Any, other: Any) -> bool:
    """Returns whether two entries are about the same thing: all their texts and ids are equal."""
    if not isinstance(one, Struct):
        return bool(one == other)
    keys = [field.name for field in one.wire_fields() if field.name in KEYS]
    return bool(keys) and all(getattr(one, name) == getattr(other, name) for name in keys)
