"""Finds the sizes and error codes in requests and responses, which are counted.

Knows nothing of counters. Functions that iterate over all entries are not used for the most frequent requests.
"""

from collections import Counter
from itertools import islice
from typing import Any, Final, NamedTuple

from barnabas.api_handlers.error_responses import ERROR_CODES
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Struct

MOST_ENTRIES: Final = 100
"""How many entries of an array are searched for errors: a response may have each partition of a cluster."""


def size_of_request(request: ProduceRequest) -> int:
    """Returns the bytes of records in a request."""
    return sum(len(row.records or b"") for topic in request.topic_data for row in topic.partition_data)


def size_of_response(response: FetchResponse) -> int:
    """Returns the bytes of records in a response."""
    return sum(len(row.records or b"") for topic in response.responses for row in topic.partitions)


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
