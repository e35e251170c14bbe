"""Finds the error codes in a message, at any depth.

Knows nothing of what they mean. Apache Kafka's ``AbstractResponse.errorCounts``.
"""

from collections.abc import Iterator

from barnabas.wire.schema import Struct


def error_codes(message: Struct) -> Iterator[int]:
    """Yields each error code of the message and of its entries.

    >>> from barnabas.wire.messages.delete_groups import DeleteGroupsResponse
    >>> Result = DeleteGroupsResponse.DeletableGroupResult
    >>> list(error_codes(DeleteGroupsResponse(results=[Result(group_id="g", error_code=69)])))
    [69]
    """
    for field in message.wire_fields():
        value = getattr(message, field.name)
        if field.name == "error_code":
            yield value
        elif isinstance(value, Struct):
            yield from error_codes(value)
        elif field.is_array and isinstance(field.kind, type):
            for each in value or ():
                yield from error_codes(each)
