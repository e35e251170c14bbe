"""Asks about several share partitions, and waits until all are answered for.

Knows nothing of what is asked.
"""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.share.messages import Outcome, Outcomes, Reply, SharePartitionKey, TopicPartition

Ask = Callable[[SharePartitionKey, Reply], object]
Done = Callable[[Outcomes], object]
"""Called once, when all partitions have an outcome: at once, or when what was written is safe."""


def gather(group_id: str, asks: Sequence[tuple[TopicPartition, Ask]], done: Done) -> None:
    """Ask about each in turn. Of a partition that is asked about twice the later outcome counts."""
    outcomes: list[Outcome | None] = [None] * len(asks)
    left = len(asks)

    def answered(at: int, outcome: Outcome) -> None:
        nonlocal left
        outcomes[at] = outcome
        left -= 1
        if left == 0:
            done({place: found for (place, _), found in zip(asks, outcomes, strict=True) if found is not None})

    if not asks:
        done({})
    for at, (place, ask) in enumerate(asks):
        ask(SharePartitionKey(group_id, *place), partial(answered, at))
