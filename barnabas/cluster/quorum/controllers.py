"""Where the controllers listen, as far as this node knows: from its configs, the metadata log, and answers.

Knows nothing of who leads, or of connections. A server of ``controller.quorum.bootstrap.servers`` has an address but no
known node id; it gets a negative one, as in Apache Kafka's ``RequestManager``.
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
    """The address book of the controllers.

    :param listener: the listener by which they are reached: the first of ``controller.listener.names``
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
        """Returns where that controller listens; None if it is not known."""
        address = self._addresses.get(node_id)
        return None if address is None else Endpoint(self.listener, *address, self._security_protocol)

    @property
    def candidates(self) -> list[int]:
        """The ids of those who can be asked who leads: voters and bootstrap servers."""
        return sorted(node_id for node_id in self._addresses if node_id < 0 or node_id in self._voters)

    def learn(self, node_id: int, host: str, port: int) -> None:
        """Notes where a leader listens, by an answer that names it."""
        self._addresses[node_id] = Address(host, port)

    def learn_voters(self, record: VotersRecord) -> None:
        """Notes the voters that the metadata log names (KIP-853)."""
        self._voters = {voter.voter_id for voter in record.voters}
        for voter in record.voters:
            for endpoint in voter.endpoints:
                if endpoint.name.upper() == self.listener:
                    self.learn(voter.voter_id, endpoint.host, endpoint.port)
