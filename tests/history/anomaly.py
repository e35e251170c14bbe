"""An anomaly: an observation that no correct broker can cause. Knows nothing of how it is found."""

from typing import NamedTuple

from tests.history.records import Operation


class Anomaly(NamedTuple):
    """The kind, a description, and the operations of the observation, oldest first."""

    kind: str
    text: str
    operations: list[Operation]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text} [{'; '.join(map(str, self.operations))}]"
