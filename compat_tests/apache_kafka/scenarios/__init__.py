"""The table: every scenario, by what it is about. Data only."""

from . import (
    cluster,
    committed,
    configs,
    edges,
    effects,
    fetching,
    framing,
    groups,
    log_offsets,
    metadata,
    producers,
    producing,
    times,
    topics,
)

SCENARIOS = [
    *framing.SCENARIOS,
    *metadata.SCENARIOS,
    *topics.SCENARIOS,
    *configs.SCENARIOS,
    *producing.SCENARIOS,
    *producers.SCENARIOS,
    *fetching.SCENARIOS,
    *log_offsets.SCENARIOS,
    *times.SCENARIOS,
    *groups.SCENARIOS,
    *committed.SCENARIOS,
    *cluster.SCENARIOS,
    *effects.SCENARIOS,
    *edges.SCENARIOS,
]
