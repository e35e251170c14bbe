"""Places the replicas of new partitions on brokers.

Knows nothing of topics. The rules are those of Apache Kafka's ``StripedReplicaPlacer``: racks in turn, and the brokers
of a rack in turn, beginning at a random one; fenced brokers only if there are no others, and never as the leader.
"""

from collections.abc import Mapping
from random import Random
from typing import TypeVar

from barnabas.cluster.image.image import BrokerImage
from barnabas.errors import InvalidReplicationFactor

T = TypeVar("T")


def place(
    brokers: Mapping[int, BrokerImage], count: int, replication_factor: int, random: Random
) -> list[tuple[int, ...]]:
    """Returns the replicas of each of ``count`` partitions, the preferred leader first.

    :raises InvalidReplicationFactor: there are too few brokers, or all of them are fenced
    """
    usable = [broker for broker in brokers.values() if is_usable(broker)]
    if all(broker.fenced for broker in usable):
        raise InvalidReplicationFactor("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(usable):
        raise InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(usable)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    racks = Racks(usable, random)
    return [racks.place(replication_factor) for _ in range(count)]


def is_usable(broker: BrokerImage) -> bool:
    """Returns whether a broker may get replicas: it does not shut down, and has an uncordoned directory (KIP-1066)."""
    is_cordoned = bool(broker.log_dirs) and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())
    return not broker.in_controlled_shutdown and not is_cordoned


class Turns:
    """Brokers in turn. Each partition gets each of them once, beginning one after the first of the last partition."""

    def __init__(self, brokers: list[int], random: Random) -> None:
        self._brokers = sorted(brokers)
        self._offset = random.randrange(len(brokers)) if brokers else 0
        self._taken = 0
        self._round = 0

    def next(self, partition: int) -> int | None:
        """Returns the next broker for a partition; None if it has got all of them."""
        brokers = self._brokers
        if not brokers:
            return None
        if self._round != partition:
            self._round = partition
            self._taken = 0
            self._offset = (self._offset + 1) % len(brokers)
        if self._taken == len(brokers):
            return None
        self._taken += 1
        return brokers[(self._taken - 1 + self._offset) % len(brokers)]

    def shuffle(self, random: Random) -> None:
        shuffle(self._brokers, random)


class Rack:
    """The brokers of one rack."""

    def __init__(self, brokers: list[BrokerImage], random: Random) -> None:
        self._fenced = Turns([broker.id for broker in brokers if broker.fenced], random)
        self._live = Turns([broker.id for broker in brokers if not broker.fenced], random)

    def leader(self, partition: int) -> int | None:
        return self._live.next(partition)

    def follower(self, partition: int) -> int | None:
        broker_id = self._live.next(partition)
        return self._fenced.next(partition) if broker_id is None else broker_id

    def shuffle(self, random: Random) -> None:
        self._fenced.shuffle(random)
        self._live.shuffle(random)


class Racks:
    """All racks in turn. They are shuffled after as many partitions as there are live brokers."""

    def __init__(self, brokers: list[BrokerImage], random: Random) -> None:
        by_name: dict[str, list[BrokerImage]] = {}
        for broker in brokers:
            by_name.setdefault("" if broker.rack is None else f"={broker.rack}", []).append(broker)
        self._racks = [Rack(by_name[name], random) for name in sorted(by_name)]
        self._live = sum(not broker.fenced for broker in brokers)
        self._offset = random.randrange(len(self._racks))
        self._partition = 0
        self._random = random

    def place(self, replication_factor: int) -> tuple[int, ...]:
        if self._partition == self._live and self._live > 1:
            shuffle(self._racks, self._random)
            for rack in self._racks:
                rack.shuffle(self._random)
            self._partition = 0
        start, partition = self._offset % len(self._racks), self._partition
        led, leader = self._leader(start, partition)
        replicas, at, skipped = [leader], start, led
        while len(replicas) < replication_factor:
            if at == skipped:
                skipped = -1  # it has the leader
            elif (broker_id := self._racks[at].follower(partition)) is not None:
                replicas.append(broker_id)
            at = (at + 1) % len(self._racks)
        self._partition += 1
        self._offset = start + 1
        return tuple(replicas)

    def _leader(self, start: int, partition: int) -> tuple[int, int]:
        """Returns the first rack from ``start`` on with a live broker, and the broker."""
        at = start
        while (broker_id := self._racks[at].leader(partition)) is None:
            at = (at + 1) % len(self._racks)
        return at, broker_id


def shuffle(items: list[T], random: Random) -> None:
    """Shuffles in place, with one random number for each item but the first, from the end (``Collections.shuffle``)."""
    for size in range(len(items), 1, -1):
        other = random.randrange(size)
        items[size - 1], items[other] = items[other], items[size - 1]
