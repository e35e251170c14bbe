"""Finds the batches, records and error codes of requests and responses, which are counted.

Knows nothing of counters. Functions that iterate over all entries are not used for the most frequent requests.
"""

from collections import Counter
from itertools import islice
from struct import Struct as Layout
from typing import Any, Final, NamedTuple

from barnabas.api_handlers.error_responses import ERROR_CODES
from barnabas.wire.schema import Struct

MOST_ENTRIES: Final = 100
"""How many entries of an array are searched for errors: a response may have each partition of a cluster."""

BATCHES_SINCE: Final = 3
"""The first version of Produce with record batches."""

COUNT_AT: Final = 57
"""The position of the record count in a batch."""

record_count = Layout(">i").unpack_from


class Sent(NamedTuple):
    """A batch of a Produce request."""

    topic: str
    topic_id: bytes
    partition: int
    size: int
    records: int


def batches_of(request: Any, version: int) -> list[Sent]:
    """Returns the batches of a Produce request. Of a message set each message counts as one record."""
    found = []
    for topic in request.topic_data:
        for row in topic.partition_data:
            data = row.records or b""
            found.append(Sent(topic.name, topic.topic_id, row.index, len(data), records_of(data, version)))
    return found


def records_of(data: Any, version: int) -> int:
    if version < BATCHES_SINCE:
        return messages_of(data)
    return int(record_count(data, COUNT_AT)[0]) if len(data) >= COUNT_AT + 4 else 0


def messages_of(message_set: Any) -> int:
    """Returns the number of messages in a message set; a compressed one is one message."""
    at = count = 0
    while at + 12 <= len(message_set):
        at += 12 + int.from_bytes(message_set[at + 8 : at + 12])
        count += 1
    return count


def acknowledgements_of(request: Any) -> Counter[int]:
    """Returns how many records a request of a share group acknowledges, by type."""
    found = Counter[int]()
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                kinds = batch.acknowledge_types
                if len(kinds) == 1:
                    found[kinds[0]] += batch.last_offset - batch.first_offset + 1
                else:
                    found.update(kinds)
    return found


class Places(NamedTuple):
    """The fields of a structure with error codes."""

    codes: tuple[str, ...]
    arrays: tuple[str, ...]  #: fields whose entries are structures


_places: dict[tuple[type[Struct], int], Places] = {}


def places_of(kind: type[Struct], version: int) -> Places:
    """Returns the fields with error codes of structures of that type; cached by version."""
    known = _places.get((kind, version))
    if known is not None:
        return known
    fields = [each for each in kind.wire_fields() if version in each.versions]
    found = _places[kind, version] = Places(
        tuple(each.name for each in fields if each.name in ERROR_CODES),
        tuple(each.name for each in fields if each.is_array),
    )
    return found


def errors_of(response: Struct, version: int) -> list[int]:
    """Returns the error codes of a response that are not 0, of each array those in the first 100 entries."""
    codes, arrays = places_of(type(response), version)
    found = [code for name in codes if (code := getattr(response, name))]
    for name in arrays:
        for entry in islice(getattr(response, name) or (), MOST_ENTRIES):
            if not isinstance(entry, Struct):
                break
            found += errors_of(entry, version)
    return found
