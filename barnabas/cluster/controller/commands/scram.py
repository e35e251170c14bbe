"""The controller's command about SCRAM credentials (KIP-554), and its result.

Knows nothing of requests and decisions.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.errors import KafkaError


class ScramUpsertion(NamedTuple):
    """A user's new credential; its bytes are secrets, which ``repr`` hides."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion(user={self.user!r}, mechanism={self.mechanism}, iterations={self.iterations})"


class ScramDeletion(NamedTuple):
    user: str
    mechanism: int


class AlterUserScramCredentials(NamedTuple):
    """Changes credentials. The result has an :class:`AlteredCredentials` for each user."""

    deletions: Sequence[ScramDeletion]
    upsertions: Sequence[ScramUpsertion]


class AlteredCredentials(NamedTuple):
    user: str
    error: KafkaError | None = None
