"""Plans the mirror's batches: the start and end offsets of each partition.

Sends requests to both clusters, and creates the target's topics and partitions before it plans for them. Its positions
are the offsets of Spark's source. Knows nothing of Spark.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.pipelines.client.cluster import EARLIEST, LATEST, Cluster, Topic, TopicPartition
from barnabas.pipelines.jobs.mirroring.following import Topics
from barnabas.pipelines.jobs.mirroring.planning import Range, limited, ranges
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.jobs.mirroring.syncs import Place
from barnabas.pipelines.jobs.mirroring.target_state import Marker, SyncsReader, make_topics, mark, markers, trusted
from barnabas.pipelines.offsets import DataLoss, StreamOffset

logger = logging.getLogger(__name__)

LOOKS_FOR_AN_END = 10
COMMIT_PATIENCE = 5.0  # seconds


class Planner:
    """Plans for one mirror. Its state in memory is a cache, which can be rebuilt from the clusters."""

    def __init__(
        self, spec: Spec, source: Cluster, target: Cluster, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec, self._source, self._target, self._now = spec, source, target, now
        self._topics = Topics(spec, source, target)
        make_topics(target, spec.policy, spec.replication_factor, checkpoints=spec.checkpoints and spec.sync_groups)
        self._syncs = trusted(target, SyncsReader(target, spec.policy.syncs_topic).refresh())
        self._known: dict[str, Topic] = {}
        self._known_at: float | None = None
        self._begin: dict[TopicPartition, int] = {}
        self._unmarked: list[TopicPartition] = []  # partitions without a marker or an offset sync
        self._frozen: Mapping[TopicPartition, int] | None = None
        self._ends = self._shown = StreamOffset({})

    def initial(self) -> StreamOffset:
        """Returns the first position without a checkpoint: the progress in the target, or ``starting_offsets``."""
        topics = self._look()
        ids = _ids(topics.values())
        if self._spec.starting_offsets == "earliest":
            return StreamOffset(self._beginnings(_keys(topics), EARLIEST), ids)
        begin = self._beginnings(_keys(topics), LATEST)
        # if the first batch fails, Spark calls this again, and the latest offset has changed by then
        for key in self._unmarked:
            place = Place(self._spec.policy.renamed(key.topic), key.partition)
            mark(self._target, self._spec.policy, place, Marker(begin[key], ids.get(key.topic), 0))
        return StreamOffset(begin, ids)

    def latest(self, start: StreamOffset, most: int | None) -> StreamOffset:
        """Returns the end of the next batch, of at most about `most` offsets. Partitions that `start` lacks are new."""
        try:
            return self._latest(start, most)
        except UnknownTopicOrPartition:  # deleted since the topics were listed
            self._known_at = None
            self._source.forget()
            return self._latest(start, most)

    def _latest(self, start: StreamOffset, most: int | None) -> StreamOffset:
        topics = self._look()
        ids = _ids(topics.values())
        self._check_ids(start.recreated(StreamOffset({}, ids)))
        known = _only(start, _keys(topics), ids)
        ends = self._list_ends_beyond(known, topics)
        if self._frozen is not None:
            ends = {key: min(end, self._frozen[key]) for key, end in ends.items() if key in self._frozen}
        begin = {**self._begin_of(start, ends, ids), **{key: known[key] for key in ends if key in known}}
        ends = {key: max(end, begin[key]) for key, end in ends.items()}
        return StreamOffset(limited(begin, ends, most), {topic: ids[topic] for topic, _ in ends if topic in ids})

    def freeze(self) -> None:
        """Limits all batches to the current end offsets, for ``availableNow``."""
        self._frozen = self._list_ends(self._look())

    def ends(self) -> StreamOffset:
        """Returns the end offsets of the source that `latest` listed last."""
        return self._ends

    def ranges(self, start: StreamOffset, end: StreamOffset) -> list[Range]:
        """Returns the ranges between two positions. After a restart they are the same, without copied records."""
        targets = {topic: self._spec.policy.renamed(topic) for topic, _ in end.at}
        begin = self._begin_of(start, end.at, end.ids)
        pieces = {}
        for key in end.at:
            history = self._syncs.get(Place(targets[key.topic], key.partition))
            if history is not None and history.last.topic_id == end.ids.get(key.topic):
                begin[key] = max(begin.get(key, 0), history.last.source_end)
                pieces[key] = history.last.number + 1
        return ranges(start, end, begin, targets, pieces)

    def show(self, done: StreamOffset) -> None:
        """Commits the position to ``commit_group`` in the source. A failure is logged, and does not end the mirror."""
        if self._spec.commit_group is None or done == self._shown:
            return
        try:
            self._source.commit(self._spec.commit_group, done.at, patience=COMMIT_PATIENCE)
            self._shown = done
        except KafkaError as problem:
            logger.warning("cannot commit the progress of the mirror to group %s: %s", self._spec.commit_group, problem)

    def _look(self) -> dict[str, Topic]:
        """Returns the mirrored topics. Every ``refresh_seconds`` it lists them again and syncs them to the target."""
        now = self._now()
        if self._known_at is None or now - self._known_at >= self._spec.refresh_seconds:
            topics = self._topics.look()
            self._topics.follow(topics.values())
            same = {name for name, topic in topics.items() if name in self._known and self._known[name].id == topic.id}
            self._begin = {key: offset for key, offset in self._begin.items() if key.topic in same}
            if not topics:
                logger.warning("%s has no topic to mirror yet", self._spec.source_alias)
            self._known, self._known_at = topics, now
        return self._known

    def _begin_of(
        self, start: StreamOffset, keys: Iterable[TopicPartition], ids: Mapping[str, str]
    ) -> dict[TopicPartition, int]:
        """Returns the start offsets of the partitions that `start` lacks."""
        known = _only(start, keys, ids)
        return self._beginnings([key for key in keys if key not in known], EARLIEST)

    def _beginnings(self, keys: Collection[TopicPartition], otherwise: int) -> dict[TopicPartition, int]:
        """Returns the start offset of each partition: its progress in the target, or else the offset `otherwise`.

        :param otherwise: EARLIEST or LATEST.
        """
        new = [key for key in keys if key not in self._begin]
        places = {key: Place(self._spec.policy.renamed(key.topic), key.partition) for key in new}
        kept = markers(self._target, self._spec.policy, places.values()) if new else {}
        unknown, ids = [], _ids(self._known.values())
        for key, place in places.items():
            topic_id = ids.get(key.topic)
            marker, history = kept.get(place), self._syncs.get(place)
            if marker is not None and marker.of(topic_id):
                self._begin[key] = marker.source
            elif history is not None and history.last.topic_id == topic_id:
                self._begin[key] = history.last.source_end
            else:
                unknown.append(key)
        listed = self._source.list_offsets(dict.fromkeys(unknown, otherwise), committed=self._committed)
        self._begin.update({TopicPartition(*key): known.offset for key, known in listed.items()})
        self._unmarked = unknown
        return {key: self._begin[key] for key in keys}

    def _list_ends(self, topics: Mapping[str, Topic]) -> dict[TopicPartition, int]:
        listed = self._source.list_offsets(dict.fromkeys(_keys(topics), LATEST), committed=self._committed)
        found = {TopicPartition(*key): known.offset for key, known in listed.items()}
        self._ends = StreamOffset(found, _ids(topics.values()))
        return found

    def _list_ends_beyond(
        self, start: Mapping[TopicPartition, int], topics: Mapping[str, Topic]
    ) -> dict[TopicPartition, int]:
        """Returns the end offsets. Lists them again if one is before `start`, as a new leader may not know it yet.

        :raises DataLoss: an end offset stays before `start`, and ``fail_on_data_loss`` is set.
        """
        for _ in range(LOOKS_FOR_AN_END):
            ends = self._list_ends(topics)
            short = [key for key, first in start.items() if ends[key] < first]
            if not short or not self._spec.fail_on_data_loss:
                return ends
            self._source.run(self._source.pause)
        raise DataLoss(
            f"{short[0]} of {self._spec.source_alias} ends at {ends[short[0]]}, but was mirrored up to "
            f"{start[short[0]]}: the source has lost records. With fail_on_data_loss=false the mirror waits until the "
            "partition has grown beyond that"
        )

    @property
    def _committed(self) -> bool:
        return self._spec.isolation == "read_committed"

    def _check_ids(self, made_again: Collection[str]) -> None:
        if made_again and self._spec.fail_on_data_loss:
            raise DataLoss(
                f"topic {', '.join(sorted(made_again))} of {self._spec.source_alias} was deleted and created again: "
                "records of the old topic may not have been mirrored. With fail_on_data_loss=false the mirror "
                "continues with the new one, after the records of the old one"
            )


def _only(start: StreamOffset, keys: Iterable[TopicPartition], ids: Mapping[str, str]) -> dict[TopicPartition, int]:
    """Returns the offsets of these partitions in `start`, without topics that were recreated."""
    fresh = start.recreated(StreamOffset({}, ids))
    return {key: start.at[key] for key in keys if key in start.at and key.topic not in fresh}


def _keys(topics: Mapping[str, Topic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in topics.values() for partition in topic.leaders]


def _ids(topics: Iterable[Topic]) -> dict[str, str]:
    return {topic.name: str(topic.id) for topic in topics if topic.id is not None}
