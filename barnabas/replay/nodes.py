"""Maps the nodes of a recording to the nodes of this run.

Knows nothing of connections: it is given the recorded responses and the cluster's Metadata response.
"""

from collections.abc import Iterable
from typing import Any

from barnabas.diagnosis import Address
from barnabas.replay.meanings import is_address
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.schema import Struct


class Nodes:
    """Finds the node for an address of the recording: the one with the same id, else the bootstrap node.

    :param bootstrap: the bootstrap node
    :param response: the cluster's Metadata response
    """

    def __init__(self, bootstrap: Address, response: MetadataResponse) -> None:
        self._bootstrap = bootstrap
        self._by_id = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self._ids: dict[Address, int] = {}

    def note(self, response: Struct) -> None:
        """Stores the addresses of nodes in a recorded response."""
        self._ids.update(_addresses(response))

    def find(self, recorded: Address) -> Address:
        """Returns the address of this run for an address of the recording."""
        return self._by_id.get(self._ids.get(recorded, -1), self._bootstrap)


def _addresses(structure: Any) -> Iterable[tuple[Address, int]]:
    for field in structure.wire_fields():
        value = getattr(structure, field.name)
        if isinstance(field.kind, type) and value is not None:
            for each in value if field.is_array else (value,):
                yield from _addresses(each)
    node_id = getattr(structure, "node_id", getattr(structure, "broker_id", None))
    if node_id is not None and is_address(structure) and structure.host:
        yield Address(structure.host, structure.port), node_id
