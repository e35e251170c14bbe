"""Decides which configs of a topic are synced to the target, and which changes that needs.

Knows nothing of clusters: names and values are passed in. The rules are MirrorMaker 2's
(``DefaultConfigPropertyFilter``, ``use.defaults.from=target``; KIP-382, KIP-894).
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
"""Configs that belong to a cluster rather than to a topic's data."""


class Changes(NamedTuple):
    """The changes that give the target's topic the configs of the source's."""

    set: dict[str, str]
    delete: tuple[str, ...]  #: reset to the target's default

    def __bool__(self) -> bool:
        return bool(self.set or self.delete)


def wanted(source: Mapping[str, str], excluded: tuple[str, ...]) -> dict[str, str]:
    """Returns the configs that are synced.

    :param source: the configs that are set on the topic itself.
    """
    kept_out = Patterns(excluded)
    return {name: value for name, value in source.items() if not excluded or name not in kept_out}


def changes(source: Mapping[str, str], target: Mapping[str, str], excluded: tuple[str, ...]) -> Changes:
    """Returns the changes to the target's topic.

    :param source: the configs that are set on the source's topic itself, without defaults and configs of brokers.
    :param target: the same of the target's topic.
    """
    there = wanted(target, excluded)
    here = wanted(source, excluded)
    return Changes(
        {name: value for name, value in here.items() if there.get(name) != value},
        tuple(sorted(there.keys() - here.keys())),
    )
