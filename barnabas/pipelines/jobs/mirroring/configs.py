"""Which configs of a topic are the same at both ends, and what is to be changed for that.

Knows nothing of clusters: names and values come in. The rules are MirrorMaker 2's (``DefaultConfigPropertyFilter``,
``use.defaults.from=target``; KIP-382, KIP-894).
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.pipelines.jobs.mirroring.policy import Patterns

EXCLUDED_CONFIGS = (
    r"follower\.replication\.throttled\.replicas",
    r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.difference\.max\.ms",
    r"message\.timestamp\.type",
    r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
)
"""What belongs to a cluster rather than to a topic's data."""


class Changes(NamedTuple):
    """What makes the target's topic as the source's is."""

    set: dict[str, str]
    delete: tuple[str, ...]  #: back to the target's default

    def __bool__(self) -> bool:
        return bool(self.set or self.delete)


def wanted(source: Mapping[str, str], excluded: tuple[str, ...]) -> dict[str, str]:
    """Of the configs that are the source topic's own, those that go with it."""
    kept_out = Patterns(excluded)
    return {name: value for name, value in source.items() if not excluded or name not in kept_out}


def changes(source: Mapping[str, str], target: Mapping[str, str], excluded: tuple[str, ...]) -> Changes:
    """From the configs that are each topic's own (neither a default nor a broker's)."""
    there = wanted(target, excluded)
    here = wanted(source, excluded)
    return Changes(
        {name: value for name, value in here.items() if there.get(name) != value},
        tuple(sorted(there.keys() - here.keys())),
    )
