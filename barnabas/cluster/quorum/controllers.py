"""The known endpoints of the controllers, from configs, the metadata log, and responses.

Knows nothing of the leader, nor of connections. A server of ``controller.quorum.bootstrap.servers`` has an address but
no known node id; it gets a negative one, as in Apache Kafka's ``RequestManager``.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.config.endpoints import Endpoint
from barnabas.wire.messages.control_records import VotersRecord

FIRST_BOOTSTRAP_ID = -2


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int


def parse_address(text: str) -> Address:
    """Parses ``host:port``; an IPv6 address is in brackets."""
    host, _, port = text.strip().rpartition(":")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


class Controllers:
    """The addresses of the controllers.

    :param listener: the listener of the controllers: the first of ``controller.listener.names``
    :param voters: ``controller.quorum.voters``, addresses by node id
    :param bootstrap: ``controller.quorum.bootstrap.servers``
    """

    def __init__(
        self,
        listener: str,
        security_protocol: str,
        *,
        voters: Mapping[int, Address] | None = None,
        bootstrap: Sequence[Address] = (),
    ) -> None:
        self.listener = listener
        self._security_protocol = security_protocol
        self._addresses = {FIRST_BOOTSTRAP_ID - index: address for index, address in enumerate(bootstrap)}
        self._addresses.update(voters or {})
        self.configured_voters = tuple(sorted(voters or ()))
        self._voters = set(voters or ())

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Returns the endpoint of a controller; None if it is not known."""
        address = self._addresses.get(node_id)
        return None if address is None else Endpoint(self.listener, *address, self._security_protocol)

    @property
    def candidates(self) -> list[int]:
        """The ids of the nodes that may know the leader: voters and bootstrap servers."""
        return sorted(node_id for node_id in self._addresses if node_id < 0 or node_id in self._voters)

    def learn(self, node_id: int, host: str, port: int) -> None:
        """Stores the address of a leader from a response."""
        self._addresses[node_id] = Address(host, port)

    def learn_voters(self, record: VotersRecord) -> None:
        """Stores the addresses of the voters in the metadata log (KIP-853)."""
        self._voters = {voter.voter_id for voter in record.voters}
        for voter in record.voters:
            for endpoint in voter.endpoints:
                if endpoint.name.upper() == self.listener:
                    self.learn(voter.voter_id, endpoint.host, endpoint.port)
