"""Tools that are commands of ours as they are: the same verbs, options and output.

Knows nothing of either.
"""

from collections.abc import Sequence

from barnabas.cli import commands


def storage(arguments: Sequence[str]) -> int:
    """``kafka-storage``: formats the directories of a node."""
    return commands.run(["storage", *arguments])
