"""The quorum, as the node uses it that starts and stops it, and serves its log to other nodes.

Knows nothing of how a quorum commits records.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.quorum.client import QuorumClient, QuorumListener

if TYPE_CHECKING:
    from barnabas.cluster.quorum.leader_log import LeaderLog


class Quorum(QuorumClient, Protocol):
    """A quorum client that can be started and stopped."""

    listeners: list[QuorumListener]
    is_sole_voter: bool  #: whether only this node can lead

    @property
    def leader_log(self) -> "LeaderLog | None":
        """Serves the log to other nodes; None on a node that cannot lead."""
        ...

    def load(self) -> None:
        """Reads the newest snapshot and the log after it, and passes known committed records to the listeners.

        :raises MetadataLogError: the log cannot be read
        """
        ...

    def start(self) -> None:
        """Starts to follow the leader, or to lead.

        :raises MetadataLogError: this node cannot be part of the quorum
        """
        ...

    def stop(self) -> None:
        """Stops following."""
        ...

    def resign(self, done: Callable[[], object]) -> None:
        """Resigns, and calls ``done`` when another node leads; immediately if no other node can."""
        ...

    def when_caught_up(self, done: Callable[[], object]) -> None:
        """Calls ``done`` once the listeners have all records up to the first known high watermark."""
        ...
