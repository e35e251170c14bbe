"""How the nodes of a seed store their logs: with Kafka's defaults, or with all that otherwise takes hours.

Knows nothing of faults. Segments roll within seconds, internal topics are compacted, the metadata log is replaced by
snapshots, old records are deleted, and a node that was down is behind them. Brokers have one log directory, or two.
"""

from collections.abc import Mapping, Sequence
from random import Random

from barnabas.cluster.features import FEATURES, METADATA_VERSION
from tests.simulation.node import DIRECTORY, SECOND_DIRECTORY

SHARE = 0.6
"""The share of seeds whose logs are not stored with the defaults."""
SEVERAL = 0.25
"""The share of seeds whose brokers have several log directories."""
EXPIRING = 0.6
"""The share of these seeds in which old records are deleted."""
COMPACTION: Mapping[str, str] = {
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.cleaner.delete.retention.ms": "3000",
}
EXPIRY: Mapping[str, str] = {
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.prune.interval.ms": "1000",
}


def storage(chance: Random) -> dict[str, str]:
    """Returns the configs of a seed's logs."""
    if chance.random() >= SHARE:
        return {}
    found = {
        "log.segment.delete.delay.ms": str(chance.choice([0, 2000])),
        "log.flush.offset.checkpoint.interval.ms": str(chance.choice([1000, 60_000])),
        "replica.high.watermark.checkpoint.interval.ms": str(chance.choice([1000, 5000])),
    }
    if chance.random() < 0.7:
        found["log.roll.ms"] = str(chance.choice([300, 2000, 10_000]))
        found |= COMPACTION
    if chance.random() < 0.2:
        found["log.flush.interval.messages"] = str(chance.choice([1, 10]))
    if chance.random() < 0.7:
        found["metadata.log.max.record.bytes.between.snapshots"] = str(chance.choice([500, 3000]))
        found["metadata.log.segment.ms"] = str(chance.choice([500, 5000]))
        found["metadata.max.retention.bytes"] = str(chance.choice([1000, 20_000]))
    if chance.random() < EXPIRING:
        found["log.flush.start.offset.checkpoint.interval.ms"] = str(chance.choice([500, 60_000]))
        found["share.coordinator.snapshot.update.records.per.snapshot"] = str(chance.choice([3, 20]))
        found["share.coordinator.cold.partition.snapshot.interval.ms"] = str(chance.choice([2000, 20_000]))
        if chance.random() < 0.5:
            found["transactional.id.expiration.ms"] = str(chance.choice([1000, 4000]))
            found["transaction.remove.expired.transaction.cleanup.interval.ms"] = "500"
        found |= EXPIRY
    return found


def directories(seed: int, metadata_version: int, share: float = SEVERAL) -> Sequence[str]:
    """Returns the log directories of a seed's brokers, which its other decisions do not depend on.

    A share of the seeds has several.

    There is one at an older ``metadata.version``, which may have no place for directories (KIP-858).
    """
    is_newest = metadata_version == FEATURES[METADATA_VERSION].last
    has_several = is_newest and Random(f"directories of {seed}").random() < share
    return (DIRECTORY, SECOND_DIRECTORY) if has_several else (DIRECTORY,)


def compacts(configs: Mapping[str, str]) -> bool:
    """Returns whether logs are compacted within the time of a run."""
    return COMPACTION.items() <= configs.items()


def expires(configs: Mapping[str, str]) -> bool:
    """Returns whether old records are deleted within the time of a run."""
    return EXPIRY.items() <= configs.items()
