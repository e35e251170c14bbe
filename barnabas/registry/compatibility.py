"""The seven levels of compatibility: which versions a new schema is compared with, and in which direction.

Knows nothing of what is in a schema.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from barnabas.registry import formats


class Level(NamedTuple):
    """The rules of a level."""

    backward: bool  #: the new schema reads what older ones wrote
    forward: bool  #: older ones read what the new one writes
    transitive: bool  #: all older versions count, not only the last one


LEVELS: Final = {
    "NONE": Level(False, False, False),
    "BACKWARD": Level(True, False, False),
    "BACKWARD_TRANSITIVE": Level(True, False, True),
    "FORWARD": Level(False, True, False),
    "FORWARD_TRANSITIVE": Level(False, True, True),
    "FULL": Level(True, True, False),
    "FULL_TRANSITIVE": Level(True, True, True),
}
DEFAULT_LEVEL: Final = "BACKWARD"


class Older(NamedTuple):
    """A version that is registered."""

    version: int
    text: str
    parse: Callable[[], formats.Schema]


def messages(new: formats.Schema, older: Sequence[Older], level: str) -> list[str]:
    """Returns why a schema is incompatible with the older ones (newest last) under a level; an empty list if it is
    compatible.

    The last texts name the incompatible version and the level.
    """
    demanded = LEVELS[level]
    compared = older if demanded.transitive else older[-1:]
    for each in reversed(compared):
        found: list[str] = []
        before = each.parse() if demanded.backward or demanded.forward else new
        if demanded.backward:
            found += formats.breaks(new, before, "new", "old")
        if demanded.forward:
            found += formats.breaks(before, new, "old", "new")
        if found:
            where = [f"{{oldSchemaVersion: {each.version}}}", f"{{oldSchema: '{each.text}'}}"]
            return [*found, *where, f"{{compatibility: '{level}'}}"]
    return []
