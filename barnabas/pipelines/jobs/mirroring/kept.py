"""What the target knows of a mirror: how far each partition is, and which offset became which.

Both are written in the transaction that writes the records, so they are as true as these are. The marker of a
partition is a committed offset: one request finds it, and a new owner of the partition sees it as soon as it has
fenced the old one. Brokers forget the offsets of an idle group after a week; the topic of syncs, which is compacted,
remembers. Knows nothing of the source.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.clock import Clock, SystemClock
from barnabas.columnar.encoding import Columns
from barnabas.pipelines.client.cluster import LATEST, Cluster, TopicPartition
from barnabas.pipelines.client.reading import read
from barnabas.pipelines.jobs.mirroring.administration import NewTopic, create_topic
from barnabas.pipelines.jobs.mirroring.policy import Policy
from barnabas.pipelines.jobs.mirroring.syncs import Place, Syncs

SYSTEM = SystemClock()


class Marker(NamedTuple):
    """How far a partition is mirrored."""

    source: int  #: the offset of the source that is next
    topic_id: str | None
    pieces: int  #: so many transactions have mirrored it

    def encode(self) -> str:
        """The metadata of the committed offset, which is itself the target's."""
        return json.dumps(self._asdict())

    @classmethod
    def decode(cls, metadata: str) -> "Marker | None":
        """None if this is no marker: somebody else commits for the group."""
        try:
            told = json.loads(metadata)
            return cls(int(told["source"]), told["topic_id"], int(told["pieces"]))
        except (ValueError, KeyError, TypeError):
            return None

    def of(self, topic_id: str | None) -> bool:
        """Whether it tells of this topic, and not of one that had its name before."""
        return self.topic_id is None or topic_id is None or self.topic_id == topic_id


def markers(target: Cluster, policy: Policy, places: Iterable[Place]) -> dict[Place, Marker]:
    """The markers that these partitions of the target have."""
    wanted = [TopicPartition(*place) for place in places]
    found = {
        Place(*topic_partition): Marker.decode(told.metadata)
        for topic_partition, told in target.committed(policy.markers_group, wanted).items()
    }
    return {place: marker for place, marker in found.items() if marker is not None}


def mark(target: Cluster, policy: Policy, place: Place, marker: Marker) -> None:
    """Mark a partition of which nothing is mirrored yet."""
    target.commit(policy.markers_group, {TopicPartition(*place): 0}, marker.encode())


class SyncsReader:
    """Reads the topic of syncs from its beginning, and goes on from there."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._next = 0
        self.syncs = Syncs()

    def refresh(self) -> Syncs:
        """All that is in there by now; nothing where there is no such topic."""
        place = TopicPartition(self._topic, 0)
        if not self._cluster.describe([self._topic]):
            return self.syncs
        end = self._cluster.list_offsets({place: LATEST}, committed=True)[place].offset
        if self._next < end:
            for batch in read(
                self._cluster,
                self._topic,
                0,
                self._next,
                end,
                headers=False,
                isolation="read_committed",
                fail_on_data_loss=False,
            ):
                keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
                for key, value in zip(keys, values, strict=True):
                    if value is not None:
                        self.syncs.add(key, value)
            self._next = end
        return self.syncs


def trusted(target: Cluster, syncs: Syncs) -> Syncs:
    """Those of partitions that still hold what was mirrored, not of topics that were deleted at the target since."""
    there = target.describe(sorted(syncs.topics()))
    places = [place for place in syncs.places() if place.topic in there]
    places = [place for place in places if place.partition in there[place.topic].leaders]
    ends = target.list_offsets({TopicPartition(*place): LATEST for place in places})
    return syncs.of({place for place in places if ends[TopicPartition(*place)].offset >= syncs[place].last.target_end})


def make_topics(target: Cluster, policy: Policy, replication_factor: int, *, checkpoints: bool) -> None:
    """Have the topics of the mirror's own in the target."""
    for name in (policy.syncs_topic, *([policy.checkpoints_topic] if checkpoints else [])):
        create_topic(target, NewTopic(name, 1, replication_factor, {"cleanup.policy": "compact"}))


def own_records(records: Iterable[tuple[bytes, bytes]], clock: Clock = SYSTEM) -> Columns:
    """Keys and values of records for these topics, as columns, of this moment."""
    keys, values = zip(*records, strict=True)
    now = np.full(len(keys), clock.time_ms(), dtype=np.int64)
    return Columns(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), None, now)
