"""The levels of the features with which the cluster of a seed begins: the newest ones, or those of an older release.

Knows nothing of nodes. An admin changes ``metadata.version`` while the cluster runs, and switches protocols of groups
off and on (``changes.py``), an operator raises ``kraft.version`` (``operators.py``).
"""

from random import Random

from barnabas.cluster.features import ELIGIBLE_LEADER_REPLICAS, FEATURES, METADATA_VERSION, METADATA_VERSIONS

SHARE = 0.25
"""The share of seeds that begin at an older ``metadata.version``."""
MADE_DYNAMIC = 0.4
"""The share of static quorums that an operator makes dynamic."""
OF_STREAMS = 0.4
"""The share of seeds whose consumer groups are streams groups instead."""
SWITCHED = 0.2
"""The share of seeds in which the protocols of consumer groups and share groups are off at times."""


def first_levels(seed: int) -> dict[str, int]:
    """Returns the levels of a seed, which its other decisions do not depend on.

    All features but ``metadata.version`` have their last level, if they may: clients are the same at each version.
    """
    chance = Random(f"levels of {seed}")
    newest = {name: feature.last for name, feature in FEATURES.items()}
    if chance.random() >= SHARE:
        return newest
    older = chance.choice(list(METADATA_VERSIONS)[:-1])
    eligible = FEATURES[ELIGIBLE_LEADER_REPLICAS]
    last = eligible.last if older >= eligible.needs else 0
    return newest | {METADATA_VERSION: older, ELIGIBLE_LEADER_REPLICAS: last}


def is_made_dynamic(seed: int) -> bool:
    """Returns whether the voters of a static quorum come into its log: ``kraft.version`` is raised (KIP-853)."""
    return Random(f"voters of {seed}").random() < MADE_DYNAMIC


def is_switched(seed: int) -> bool:
    """Returns whether protocols of groups are switched off and on: ``group.version`` and ``share.version`` change."""
    return Random(f"protocols of {seed}").random() < SWITCHED


def is_of_streams(seed: int) -> bool:
    """Returns whether consumer groups are streams groups instead (KIP-1071)."""
    return Random(f"streams of {seed}").random() < OF_STREAMS
