"""The mirror's state in the target: the marker of each partition (its progress), and the offset syncs.

Both are written in the transaction of the records, so they agree with them. A marker is a committed offset: one
request returns it, and a new producer of the partition sees it once it has fenced the old one. Brokers expire the
offsets of an idle group after a week; the offset syncs topic is compacted, and keeps the progress. Knows nothing of
the source.
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
    """The progress of a partition."""

    source: int  #: the next offset of the source
    topic_id: str | None
    pieces: int  #: the number of transactions that have mirrored it

    def encode(self) -> str:
        """Returns the metadata of the committed offset. The committed offset itself is the target's."""
        return json.dumps(self._asdict())

    @classmethod
    def decode(cls, metadata: str) -> "Marker | None":
        """Returns the marker, or None if the metadata is not a marker: another client commits for the group."""
        try:
            fields = json.loads(metadata)
            return cls(int(fields["source"]), fields["topic_id"], int(fields["pieces"]))
        except (ValueError, KeyError, TypeError):
            return None

    def of(self, topic_id: str | None) -> bool:
        """Returns whether it belongs to this topic, and not to an earlier topic of the same name."""
        return self.topic_id is None or topic_id is None or self.topic_id == topic_id


def markers(target: Cluster, policy: Policy, places: Iterable[Place]) -> dict[Place, Marker]:
    """Returns the markers of these partitions of the target."""
    wanted = [TopicPartition(*place) for place in places]
    found = {
        Place(*topic_partition): Marker.decode(fields.metadata)
        for topic_partition, fields in target.committed(policy.markers_group, wanted).items()
    }
    return {place: marker for place, marker in found.items() if marker is not None}


def mark(target: Cluster, policy: Policy, place: Place, marker: Marker) -> None:
    """Commits the marker of a partition that is not mirrored yet."""
    target.commit(policy.markers_group, {TopicPartition(*place): 0}, marker.encode())


class SyncsReader:
    """Reads the offset syncs topic from its beginning, and later only the new records."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._next = 0
        self.syncs = Syncs()

    def refresh(self) -> Syncs:
        """Reads the new records; returns all offset syncs, or none if the topic does not exist."""
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
    """Returns the offset syncs of partitions that still hold the mirrored records.

    Drops those of topics that were deleted in the target since.
    """
    there = target.describe(sorted(syncs.topics()))
    places = [place for place in syncs.places() if place.topic in there]
    places = [place for place in places if place.partition in there[place.topic].leaders]
    ends = target.list_offsets({TopicPartition(*place): LATEST for place in places})
    return syncs.of({place for place in places if ends[TopicPartition(*place)].offset >= syncs[place].last.target_end})


def make_topics(target: Cluster, policy: Policy, replication_factor: int, *, checkpoints: bool) -> None:
    """Creates the mirror's internal topics in the target, if they do not exist."""
    for name in (policy.syncs_topic, *([policy.checkpoints_topic] if checkpoints else [])):
        create_topic(target, NewTopic(name, 1, replication_factor, {"cleanup.policy": "compact"}))


def own_records(records: Iterable[tuple[bytes, bytes]], clock: Clock = SYSTEM) -> Columns:
    """Returns records for the internal topics, given as keys and values, as columns with the current timestamp."""
    keys, values = zip(*records, strict=True)
    now = np.full(len(keys), clock.time_ms(), dtype=np.int64)
    return Columns(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), None, now)
