"""Places the replicas of new partitions on brokers.

Knows nothing of topics. Round robin over the brokers, racks in turn, starting anywhere: the rules of Apache Kafka's
``StripedReplicaPlacer``, so that leaders and followers spread evenly and no two replicas share a rack that need not.
"""

from collections.abc import Mapping
from random import Random

from barnabas.cluster.image.image import BrokerImage
from barnabas.errors import InvalidReplicationFactor


def place(
    brokers: Mapping[int, BrokerImage], count: int, replication_factor: int, random: Random
) -> list[tuple[int, ...]]:
    """Returns the replicas of each of ``count`` partitions, the preferred leader first.

    :raises InvalidReplicationFactor: there are too few brokers, or all of them are fenced
    """
    usable = [broker for broker in brokers.values() if not (broker.log_dirs and is_cordoned(broker))]
    if all(broker.fenced for broker in usable):
        raise InvalidReplicationFactor("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(usable):
        raise InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(usable)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    stripe = striped(usable, random)
    start = random.randrange(len(stripe))
    return [
        live_first([stripe[(start + index + nth) % len(stripe)] for nth in range(replication_factor)])
        for index in range(count)
    ]


def is_cordoned(broker: BrokerImage) -> bool:
    """Returns whether all directories of a broker are cordoned (KIP-1066)."""
    return set(broker.log_dirs) <= set(broker.cordoned_log_dirs)


def striped(brokers: list[BrokerImage], random: Random) -> list[BrokerImage]:
    """Returns the brokers in turns of racks: the first of each rack, then the second of each, and so on."""
    by_rack: dict[str | None, list[BrokerImage]] = {}
    for broker in sorted(brokers, key=lambda each: each.id):
        by_rack.setdefault(broker.rack, []).append(broker)
    racks = list(by_rack.values())
    for rack in racks:
        turn = random.randrange(len(rack))
        rack[:] = rack[turn:] + rack[:turn]
    longest = max(map(len, racks))
    return [rack[nth] for nth in range(longest) for rack in racks if nth < len(rack)]


def live_first(replicas: list[BrokerImage]) -> tuple[int, ...]:
    """Returns the brokers with fenced ones last, so that the preferred leader can lead at once."""
    return tuple(broker.id for broker in sorted(replicas, key=lambda each: each.fenced))
