"""A voter of a dynamic quorum, as a control record has it (KIP-853).

Knows nothing of how voters are added, removed or elected.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.cluster.features import KRAFT
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.config.endpoints import Endpoint
from barnabas.wire.messages.control_records import VotersRecord

Voter = VotersRecord.Voter


class Levels(NamedTuple):
    """The levels of ``kraft.version`` that a node supports."""

    first: int
    last: int


LEVELS = Levels(KRAFT.first, KRAFT.last)
"""The levels that this node supports."""


def voter_record(key: ReplicaKey, endpoints: Iterable[Endpoint], levels: Levels = LEVELS) -> Voter:
    """Returns a voter for the control record."""
    return Voter(
        voter_id=key.node_id,
        voter_directory_id=key.directory_id,
        endpoints=[Voter.Endpoint(name=each.name, host=each.host, port=each.port) for each in endpoints],
        kraft_version_feature=Voter.KRaftVersionFeature(
            min_supported_version=levels.first, max_supported_version=levels.last
        ),
    )
