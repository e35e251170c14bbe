"""Where the nodes of a recording are in this run.

Knows nothing of connections: it is given the answers of the recording, and what the cluster says of itself.
"""

from collections.abc import Iterable
from typing import Any

from barnabas.diagnosis import Address
from barnabas.replay.meanings import is_address
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.schema import Struct


class Nodes:
    """Finds the node for an address of the recording: that of the same id, else the one to begin with.

    :param bootstrap: where to begin
    :param response: what the cluster answers to Metadata
    """

    def __init__(self, bootstrap: Address, response: MetadataResponse) -> None:
        self._bootstrap = bootstrap
        self._by_id = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self._ids: dict[Address, int] = {}

    def note(self, response: Struct) -> None:
        """Learns the addresses of nodes from an answer of the recording."""
        self._ids.update(_addresses(response))

    def find(self, recorded: Address) -> Address:
        """Returns where to connect instead of an address of the recording."""
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
