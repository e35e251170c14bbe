"""The quorum as the node sees it that starts and stops it, and that serves its log to others.

Knows nothing of how a quorum agrees.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.quorum.client import QuorumClient, QuorumListener

if TYPE_CHECKING:
    from barnabas.cluster.quorum.leader_log import LeaderLog


class Quorum(QuorumClient, Protocol):
    """A quorum client with a life."""

    listeners: list[QuorumListener]
    is_sole_voter: bool  #: whether nobody but this node can lead

    @property
    def leader_log(self) -> "LeaderLog | None":
        """The log for those who copy it; None on a node that cannot lead."""
        ...

    def load(self) -> None:
        """Reads the newest snapshot and the log after it, and passes to the listeners what is known to be committed.

        :raises MetadataLogError: the log cannot be read
        """
        ...

    def start(self) -> None:
        """Begins to follow the leader, or to lead.

        :raises MetadataLogError: this node cannot be part of the quorum
        """
        ...

    def stop(self) -> None:
        """Stops following."""
        ...

    def resign(self, done: Callable[[], object]) -> None:
        """Gives up the lead, and calls ``done`` when another node leads; at once where no other node can."""
        ...

    def when_caught_up(self, done: Callable[[], object]) -> None:
        """Calls ``done`` once the listeners have everything that was committed when the leader was first heard."""
        ...
