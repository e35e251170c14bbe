"""The addresses of nodes in responses: finds and replaces them.

Knows nothing of sockets. The fields follow from the declared schemas: structures with a host and a port, except those
of Kafka Streams' own servers (KIP-1071). Produce and Fetch have them since KIP-951, the quorum's APIs since KIP-853.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from barnabas.wire.message import API_VERSIONS, Request, Response
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.schema import Struct

Path = tuple[str, ...]

Place = Callable[[str, int], tuple[str, int]]
"""Returns the host and port of a node as clients see it."""

APPLICATIONS: Final = ("StreamsGroupHeartbeatResponse", "StreamsGroupDescribeResponse")
"""Responses whose addresses are those of applications, not of nodes."""


class Addressed(NamedTuple):
    """The response of an API that has addresses in some versions, and their fields."""

    response: type[Response]
    paths: tuple[Path, ...]  #: of the structures with an address

    def has_addresses(self, version: int) -> bool:
        """Returns whether there are addresses in that version."""
        return any(_is_there(self.response, path, version) for path in self.paths)


def addressed(requests: Mapping[int, type[Request]]) -> dict[int, Addressed]:
    """Returns the APIs whose responses have addresses, by their keys.

    >>> from barnabas.wire.messages.metadata import MetadataRequest
    >>> addressed({3: MetadataRequest})[3].paths
    (('brokers',),)
    """
    found = {}
    for key, request in requests.items():
        paths = tuple(_paths(request.response)) if request.response.__name__ not in APPLICATIONS else ()
        if paths:
            found[key] = Addressed(request.response, paths)
    return found


def _paths(structure: type[Struct]) -> Iterator[Path]:
    fields = structure.wire_fields()
    if {"host", "port"} <= {field.name for field in fields}:
        yield ()
    for field in fields:
        if isinstance(field.kind, type):
            for path in _paths(field.kind):
                yield (field.name, *path)


def _is_there(structure: type[Struct], path: Path, version: int) -> bool:
    name, rest = (path[0], path[1:]) if path else ("host", ())
    field = next(each for each in structure.wire_fields() if each.name == name)
    if version not in field.versions:
        return False
    return not path or not isinstance(field.kind, type) or _is_there(field.kind, rest, version)


def replace(response: Response, paths: tuple[Path, ...], place: Place) -> bool:
    """Replaces the addresses in a response. Returns whether there were any."""
    has_changed = False
    for path in paths:
        for structure in _structures(response, path):
            if structure.host and structure.port > 0:  # where there is no node, the host is empty
                structure.host, structure.port = place(structure.host, structure.port)
                has_changed = True
    return has_changed


def _structures(value: Any, path: Path) -> Iterator[Any]:
    if not path:
        yield value
        return
    inner = getattr(value, path[0])
    for each in inner if isinstance(inner, list | tuple) else () if inner is None else (inner,):
        yield from _structures(each, path[1:])


class Look(NamedTuple):
    """How a response is decoded."""

    request: type[Request]
    paths: tuple[Path, ...]


def looks(requests: Mapping[int, type[Request]], known: Mapping[int, Addressed]) -> dict[tuple[int, int], Look]:
    """Returns the APIs and versions whose responses have to be decoded: those with addresses, and ApiVersions."""
    found = {}
    for key, request in requests.items():
        there = known.get(key)
        for version in range(request.versions.first, request.versions.last + 1):
            if there is not None and there.has_addresses(version):
                found[key, version] = Look(request, there.paths)
            elif key == API_VERSIONS:
                found[key, version] = Look(request, ())
    return found


def limit_versions(response: ApiVersionsResponse, known: Mapping[int, Addressed]) -> bool:
    """Removes the versions that are not declared here, in whose responses addresses could not be found.

    Returns whether there were any.
    """
    has_changed = False
    for api in response.api_keys:
        there = known.get(api.api_key)
        if there is not None and api.max_version > there.response.versions.last:
            api.max_version = there.response.versions.last
            has_changed = True
    return has_changed
