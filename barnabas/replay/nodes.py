"""Maps the nodes of a recording to the nodes of this run.

Knows nothing of connections: it is given the recorded responses and the cluster's Metadata response.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.diagnosis import Address
from barnabas.replay.meanings import is_address
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.schema import Struct


class Sizes(NamedTuple):
    """How many nodes the recorded cluster has had, and how many this one has."""

    recorded: int = 1
    replayed: int = 1

    @property
    def are_one(self) -> bool:
        """Whether both have one node, so that nothing can be at another one than it was."""
        return max(self) <= 1

    @property
    def differ(self) -> bool:
        return self.recorded != self.replayed


class Nodes:
    """Finds the node for one of the recording: the one with the same id, or in the same place among as many ids, else
    the first one; for an address that is no node's, the bootstrap node.

    :param bootstrap: the bootstrap node
    :param response: the cluster's Metadata response
    """

    def __init__(self, bootstrap: Address, response: MetadataResponse) -> None:
        self._bootstrap = bootstrap
        self._by_id = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self._recorded: dict[Address, int] = {}

    @property
    def addresses(self) -> list[Address]:
        """All nodes of this run."""
        return list(self._by_id.values())

    @property
    def sizes(self) -> Sizes:
        return Sizes(len(set(self._recorded.values())) or 1, len(self._by_id))

    def note(self, response: Struct) -> None:
        """Stores the addresses of nodes in a recorded response."""
        self._recorded.update(_addresses(response))

    def ids(self) -> Mapping[int, int]:
        """Returns the ids of this run by those of the recording."""
        recorded, ours = sorted(set(self._recorded.values())), sorted(self._by_id)
        if not ours:
            return {}
        as_many = len(recorded) == len(ours) and not set(recorded) <= set(ours)
        other = dict(zip(recorded, ours, strict=True)) if as_many else {each: each for each in ours}
        return {each: other.get(each, ours[0]) for each in recorded}

    def find(self, recorded: Address) -> Address:
        """Returns the address of this run for an address of the recording."""
        if recorded not in self._recorded:
            return self._bootstrap
        ids = self.ids()
        return self._by_id.get(ids.get(self._recorded[recorded], -1), self._bootstrap)


def _addresses(structure: Any) -> Iterable[tuple[Address, int]]:
    for field in structure.wire_fields():
        value = getattr(structure, field.name)
        if isinstance(field.kind, type) and value is not None:
            for each in value if field.is_array else (value,):
                yield from _addresses(each)
    node_id = getattr(structure, "node_id", getattr(structure, "broker_id", None))
    if node_id is not None and is_address(structure) and structure.host:
        yield Address(structure.host, structure.port), node_id
