"""The levels of features: updates, and errors. Permanent changes are undone at the end.

Version 0 has no ``ValidateOnly``: it always applies the update.
"""

from ..play import Step
from ..steps import ask, scenario

UPGRADE, SAFE, UNSAFE = 1, 2, 3
METADATA, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
TRANSACTIONS, SHARE, STREAMS = "transaction.version", "share.version", "streams.version"


def update(*updates: tuple[str, int, int], validate: bool = True, timeout_ms: int = 5000) -> Step:
    entries = [
        {"Feature": name, "MaxVersionLevel": level, "UpgradeType": kind, "AllowDowngrade": kind != UPGRADE}
        for name, level, kind in updates
    ]
    return ask("UpdateFeatures", timeoutMs=timeout_ms, FeatureUpdates=entries, ValidateOnly=validate)


SCENARIOS = [
    scenario("of nothing", "UpdateFeatures", update(), update(validate=False)),
    scenario(
        "to where it is",
        "UpdateFeatures",
        [update((TRANSACTIONS, 2, kind), validate=False) for kind in (UPGRADE, SAFE, UNSAFE)],
        [update((METADATA, 30, kind), validate=False) for kind in (UPGRADE, SAFE, UNSAFE)],
        [update((KRAFT, 0, kind)) for kind in (UPGRADE, SAFE, UNSAFE)],
        update((ELR, 1, UPGRADE), validate=False),
        alone=True,
    ),
    scenario(
        "levels that there are not",
        "UpdateFeatures",
        [
            update((name, level, kind))
            for name, levels in ((TRANSACTIONS, (3, -1, 32767, -32768)), (METADATA, (31, 6, 0, -1)), (KRAFT, (2, -1)))
            for level in levels
            for kind in (UPGRADE, SAFE, UNSAFE)
        ],
    ),
    scenario(
        "features that there are not",
        "UpdateFeatures",
        [update((name, level, kind)) for name in ("nope", "") for level in (0, 1) for kind in (UPGRADE, SAFE)],
        # Of several wrong features Apache Kafka names the first of a hash map, Barnabas the first of the request.
        update(("nada", 2, UPGRADE), ("nope", 1, UPGRADE)),
        update((TRANSACTIONS, 2, UPGRADE), ("nope", 1, UPGRADE)),
        update((TRANSACTIONS, 2, UPGRADE), ("nope", 1, UPGRADE), validate=False),
    ),
    scenario(
        "down",
        "UpdateFeatures",
        [update((name, 0, kind)) for name in (TRANSACTIONS, ELR, SHARE) for kind in (UPGRADE, SAFE, UNSAFE)],
        update(("group.version", 0, UNSAFE), (TRANSACTIONS, 1, SAFE)),
        update(("group.version", 0, UPGRADE), (TRANSACTIONS, 1, SAFE)),
    ),
    scenario(
        "metadata.version down",
        "UpdateFeatures",
        [update((METADATA, level, kind)) for level in (29, 23, 22, 7) for kind in (UPGRADE, SAFE, UNSAFE)],
        update((METADATA, 22, SAFE), (ELR, 0, SAFE)),
    ),
    scenario(
        "kraft.version up", "UpdateFeatures", update((KRAFT, 1, UPGRADE)), update((KRAFT, 1, SAFE)), versions="1+"
    ),
    scenario(
        "upgrade types that there are not",
        "UpdateFeatures",
        [update((TRANSACTIONS, level, kind)) for level in (1, 2, 3) for kind in (0, 4, -1, 127)],
        update(("nope", -1, 0)),
        update((SHARE, 1, 0)),
    ),
    scenario(
        "twice",
        "UpdateFeatures",
        update((TRANSACTIONS, 1, SAFE), (TRANSACTIONS, 0, SAFE)),
        update((TRANSACTIONS, 3, UPGRADE), (TRANSACTIONS, 2, UPGRADE)),
        update((TRANSACTIONS, 2, UPGRADE), (TRANSACTIONS, 3, UPGRADE)),
    ),
    scenario("no time", "UpdateFeatures", [update((SHARE, 1, UPGRADE), timeout_ms=ms) for ms in (0, -1)]),
    scenario(
        "down and up",
        "UpdateFeatures",
        update((SHARE, 0, SAFE), (STREAMS, 0, UNSAFE), validate=False),
        update((SHARE, 0, SAFE), validate=False),
        update((SHARE, 1, SAFE), validate=False),
        update((STREAMS, 1, UPGRADE), (SHARE, 1, UPGRADE), ("nope", 1, UPGRADE), validate=False),
        update((STREAMS, 1, UPGRADE), (SHARE, 1, UPGRADE), validate=False),
        alone=True,
    ),
]
