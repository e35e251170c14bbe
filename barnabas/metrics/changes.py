"""Counts changes in the metadata: ISR shrinks and expands, and elected leaders.

Knows nothing of Prometheus, nor of how changes are made: it follows the published images.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from barnabas.cluster.image.image import MetadataDelta, MetadataImage, PartitionImage
from barnabas.metrics.samples import Sample

NO_LEADER: Final = -1

SHRINKS: Final = "kafka_server_replicamanager_isrshrinks"
EXPANDS: Final = "kafka_server_replicamanager_isrexpands"
ELECTIONS: Final = "barnabas_leader_elections"
UNCLEAN: Final = "kafka_controller_controllerstats_uncleanleaderelections"
FROM_ELIGIBLE: Final = "kafka_controller_controllerstats_electionfromeligibleleaderreplicas"


class Changes:
    """The changes since the start. ISRs count where this node leads, elections where it is the active controller.

    :param is_controller: returns whether this node is the active controller
    """

    def __init__(self, node_id: int, image: MetadataImage, is_controller: Callable[[], bool]) -> None:
        self._node_id = node_id
        self._image = image
        self._is_controller = is_controller
        self._counts = Counter[str]()

    def follow(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Counts the changes of a new image."""
        before, self._image = self._image, image
        for topic_id, indexes in delta.partitions.items():
            old, new = before.topics_by_id.get(topic_id), image.topics_by_id.get(topic_id)
            if old is None or new is None:
                continue
            for index in indexes:
                if index in old.partitions and index in new.partitions:
                    self._count(old.partitions[index], new.partitions[index])

    def _count(self, old: PartitionImage, new: PartitionImage) -> None:
        """Counts as Apache Kafka's ``Partition`` and ``ControllerMetadataMetricsPublisher`` do."""
        if old.leader == new.leader == self._node_id:
            self._counts[SHRINKS] += len(new.isr) < len(old.isr)
            self._counts[EXPANDS] += len(new.isr) > len(old.isr)
        if new.leader not in (NO_LEADER, old.leader) and self._is_controller():
            self._counts[ELECTIONS] += 1
            if new.leader not in old.isr:
                self._counts[FROM_ELIGIBLE if new.leader in old.elr else UNCLEAN] += 1

    def samples(self) -> Iterator[Sample]:
        """Yields all counts."""
        for name in (SHRINKS, EXPANDS, ELECTIONS, UNCLEAN, FROM_ELIGIBLE):
            yield Sample(name, self._counts[name])
