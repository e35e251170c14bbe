"""Runs a command for several share partitions, and waits for all outcomes.

Knows nothing of what the command is.
"""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.share.messages import Outcome, Outcomes, Reply, SharePartitionKey, TopicPartition

Ask = Callable[[SharePartitionKey, Reply], object]
Done = Callable[[Outcomes], object]
"""Called once, when every partition has an outcome."""


def gather(group_id: str, asks: Sequence[tuple[TopicPartition, Ask]], done: Done) -> None:
    """Runs the command of each partition in turn. Of two outcomes for one partition the later one counts."""
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
