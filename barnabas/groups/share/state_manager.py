"""Initializes, alters and deletes the state of share partitions, and records which ones have state.

Knows nothing of members. The share coordinator stores the state itself, and is reached through the persister. A record
names the partitions before the persister is called, and after it has answered. Follows what Apache Kafka's
``GroupCoordinatorService`` and ``GroupMetadataManager`` do for ``ShareGroupStatePartitionMetadata``.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from barnabas.errors import (
    GroupIdNotFound,
    KafkaError,
    NonEmptyGroup,
    UnknownTopicOrPartition,
)
from barnabas.groups.environment import Environment
from barnabas.groups.group import Group
from barnabas.groups.ledger import Written, log_failure
from barnabas.groups.persister import Done, Outcome, TopicPartition
from barnabas.groups.share import records
from barnabas.groups.share.messages import PartitionErrors, TopicErrors
from barnabas.groups.share.share_group import ShareGroup
from barnabas.groups.share.state_metadata import (
    StateMetadata,
    Topic,
    partitions_of,
    with_partitions,
    without_partitions,
)

logger = logging.getLogger(__name__)

NO_START_OFFSET = -1
"""The start offset of a share partition without state: ``share.auto.offset.reset`` decides it."""

PartitionsReply = Callable[[PartitionErrors | KafkaError], object]
TopicsReply = Callable[[TopicErrors | KafkaError], object]


class StateManager:
    """The state of the share partitions of all groups, as the group coordinator sees it."""

    def __init__(self, environment: Environment, find: Callable[[str], ShareGroup]) -> None:
        """:param find: returns a share group, or raises a :class:`KafkaError`"""
        self._environment = environment
        self._find = find

    def _commit(self, group: ShareGroup, state: StateMetadata, written: Written) -> None:
        self._environment.ledger.commit(group.group_id, [records.state_record(group.group_id, state)], written)

    def _commit_change(self, group: ShareGroup, state: StateMetadata, written: Written) -> None:
        if state == group.state:
            written(None)
        else:
            self._commit(group, state, written)

    def _is_current(self, group: ShareGroup) -> bool:
        """Returns whether the group still exists, and was not replaced."""
        return self._environment.groups.get(group.group_id) is group

    # ------------------------------------------------------ initialization

    def uninitialized(self, group: ShareGroup, topic_names: Collection[str]) -> dict[bytes, Topic]:
        """Returns the partitions of those topics that have no state, and are not being initialized.

        An initialization counts as failed after ``group.share.initialize.retry.interval.ms``.
        """
        image, now_ms = self._environment.image(), self._environment.clock.time_ms()
        patience_ms: int = self._environment.config()["group.share.initialize.retry.interval.ms"]
        found = {}
        for name in sorted(topic_names):
            topic = image.topics_by_name.get(name)
            known = partitions_of(group.state.initialized, topic.id) if topic is not None else frozenset()
            if topic is None or len(known) >= len(topic.partitions):
                continue
            partitions = {
                index
                for index in topic.partitions.keys() - known
                if now_ms - group.initializing_since_ms.get((topic.id, index), -patience_ms) >= patience_ms
            }
            if partitions:
                found[topic.id] = Topic(name, frozenset(partitions))
        return found

    def mark_initializing(self, group: ShareGroup, topics: Mapping[bytes, Topic]) -> None:
        """Notes that their initialization has started."""
        now_ms = self._environment.clock.time_ms()
        group.initializing_since_ms.update((at, now_ms) for at in _partitions(topics))

    def unmark_initializing(self, group: ShareGroup, topics: Mapping[bytes, Topic]) -> None:
        for at in _partitions(topics):
            group.initializing_since_ms.pop(at, None)

    def initialize(self, group: ShareGroup, topics: Mapping[bytes, Topic]) -> None:
        """Has the persister initialize partitions that are recorded as initializing."""
        if not topics:
            return
        self.mark_initializing(group, topics)
        starts = {
            topic_id: dict.fromkeys(sorted(topic.partitions), NO_START_OFFSET) for topic_id, topic in topics.items()
        }

        def done(outcomes: Mapping[TopicPartition, Outcome]) -> None:
            failed = [
                f"{topics[topic_id].name}-{partition} ({outcome.error})"
                for (topic_id, partition), outcome in outcomes.items()
                if outcome.error is not None
            ]
            if failed:
                logger.warning("group %s: cannot initialize the state of %s", group.group_id, ", ".join(failed))
            self._initialized(group, topics, outcomes, log_failure(group.group_id, "which share partitions have state"))

        self._environment.persister().initialize(group.group_id, starts, group.epoch, done)

    def _initialized(
        self,
        group: ShareGroup,
        topics: Mapping[bytes, Topic],
        outcomes: Mapping[TopicPartition, Outcome],
        written: Written,
    ) -> None:
        """Writes which of the partitions are initialized.

        A partition stays *initializing* if that failed, since an earlier attempt may have succeeded without being
        recorded. The deletion of the group then includes it. Apache Kafka drops such partitions.
        """
        for at in outcomes:
            group.initializing_since_ms.pop(at, None)
        if not self._is_current(group):
            written(GroupIdNotFound())
            return
        by_id = self._environment.image().topics_by_id
        made: dict[bytes, set[int]] = {}
        for (topic_id, partition), outcome in outcomes.items():
            if outcome.error is None and topic_id in by_id:
                made.setdefault(topic_id, set()).add(partition)
        known = group.state.initialized
        settled = [
            at
            for at, outcome in outcomes.items()
            if outcome.error is None or at[0] not in by_id or at[1] in partitions_of(known, at[0])
        ]
        fresh = {each: Topic(topics[each].name, frozenset(partitions)) for each, partitions in made.items()}
        state = group.state._replace(
            initializing=without_partitions(group.state.initializing, settled),
            initialized=with_partitions(known, fresh.items()),
        )
        self._commit_change(group, state, written)

    def topics_changed(self, group: ShareGroup) -> None:
        """Removes deleted topics from the metadata. The share coordinator deletes their state."""
        state = group.state.of_topics(self._environment.image().topics_by_id.keys())
        self._commit_change(group, state, log_failure(group.group_id, "which share partitions have state"))

    # -------------------------------------------------------------- offsets

    def initialized(self, group_id: str) -> dict[bytes, list[int]]:
        """Returns the initialized partitions of a group by topic id; empty if the group does not exist."""
        try:
            group = self._find(group_id)
        except GroupIdNotFound:
            return {}
        topics = group.state.initialized
        return {each: sorted(topics[each].partitions) for each in records.uuid_order(topics)}

    def alter_offsets(self, group_id: str, starts: Mapping[bytes, Mapping[int, int]], reply: PartitionsReply) -> None:
        """Sets start offsets (AlterShareGroupOffsets) of partitions that exist. Creates the group if it does not exist.

        :raises KafkaError: GROUP_ID_NOT_FOUND if the group has another type, NON_EMPTY_GROUP
        """
        group = self._group_to_alter(group_id)
        by_id = self._environment.image().topics_by_id
        topics = {each: Topic(by_id[each].name, frozenset(partitions)) for each, partitions in starts.items()}
        if not topics:
            reply({})
            return

        def written(error: KafkaError | None) -> None:
            if error is not None:
                self.unmark_initializing(group, topics)
                reply(error)
                return
            current = self._environment.groups.get(group_id)
            if not isinstance(current, ShareGroup):
                reply(GroupIdNotFound())
                return

            def initialized(outcomes: Mapping[TopicPartition, Outcome]) -> None:
                errors = {at: outcome.error for at, outcome in outcomes.items()}
                self._initialized(
                    current, topics, outcomes, lambda failure: reply(errors if failure is None else failure)
                )

            # a member that joins meanwhile must not initialize them differently
            self.mark_initializing(current, topics)
            self._environment.persister().initialize(group_id, starts, current.epoch, initialized)

        self.mark_initializing(group, topics)
        self._commit(group, group.state.with_initializing(topics), written)

    def _group_to_alter(self, group_id: str) -> ShareGroup:
        """Returns the group, which must be empty. It may be new."""
        try:
            group = self._find(group_id)
        except GroupIdNotFound:
            if group_id in self._environment.groups:
                raise
            return ShareGroup(group_id)
        if not group.is_empty:
            raise NonEmptyGroup
        return group

    def delete_offsets(self, group_id: str, topic_ids: Collection[bytes], reply: TopicsReply) -> None:
        """Deletes the state of topics (DeleteShareGroupOffsets): UNKNOWN_TOPIC_OR_PARTITION for topics without state.

        :raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP
        """
        group = self._find(group_id)
        if not group.is_empty:
            raise NonEmptyGroup
        state = group.state
        deleted_ids = [each for each in dict.fromkeys(topic_ids) if each in state.initialized or each in state.deleting]
        errors: TopicErrors = {each: None if each in deleted_ids else UnknownTopicOrPartition() for each in topic_ids}
        if not deleted_ids:
            reply(errors)
            return

        def deleted(outcomes: Mapping[TopicPartition, Outcome]) -> None:
            for (topic_id, _), outcome in outcomes.items():
                errors[topic_id] = errors[topic_id] or outcome.error
            self._deleted(group, outcomes, lambda error: reply(errors if error is None else error))

        self._delete_state(group, deleted_ids, _without_initialized(state, deleted_ids), deleted, reply)

    # --------------------------------------------------------------- groups

    def delete_group(self, group: Group, written: Written) -> None:
        """Deletes an empty share group, after the state of all its partitions."""
        assert isinstance(group, ShareGroup)
        state = group.state
        deleted_ids = list(dict.fromkeys([*state.initialized, *state.initializing, *state.deleting]))

        def deleted(outcomes: Mapping[TopicPartition, Outcome]) -> None:
            error = next((each.error for each in outcomes.values() if each.error is not None), None)
            if error is None and not group.is_empty:  # a member joined meanwhile
                error = NonEmptyGroup()
            if error is not None:
                self._deleted(group, outcomes, lambda failure: written(failure or error))
            elif not self._is_current(group):
                written(GroupIdNotFound())
            elif group.state.initialized or group.state.initializing:
                self.delete_group(group, written)  # a member joined meanwhile, had partitions initialized, and left
            else:
                self._environment.ledger.commit(group.group_id, group.tombstones(), written)

        if deleted_ids:
            self._delete_state(group, deleted_ids, StateMetadata(), deleted, written)
        else:
            deleted({})

    def _delete_state(
        self,
        group: ShareGroup,
        deleted_ids: Collection[bytes],
        remaining: StateMetadata,
        done: Done,
        refused: Callable[[KafkaError], object],
    ) -> None:
        """Writes that the state of the topics is being deleted, and has the persister delete it."""
        partitions = list(self._partitions(group.state, deleted_ids))
        names = {each: topic.name for part in group.state[:2] for each, topic in part.items()} | dict(
            group.state.deleting
        )
        state = remaining._replace(deleting={**remaining.deleting, **{each: names[each] for each in deleted_ids}})

        def written(error: KafkaError | None) -> None:
            if error is not None:
                refused(error)
            else:
                self._environment.persister().delete(group.group_id, partitions, done)

        self._commit(group, state, written)

    def _deleted(self, group: ShareGroup, outcomes: Mapping[TopicPartition, Outcome], written: Written) -> None:
        """Writes which topics have no state any more."""
        if not self._is_current(group):
            written(GroupIdNotFound())
            return
        gone = [at for at, outcome in outcomes.items() if outcome.error is None]
        kept = {topic_id for (topic_id, _), outcome in outcomes.items() if outcome.error is not None}
        requested = {topic_id for topic_id, _ in outcomes}
        state = group.state._replace(
            initialized=without_partitions(group.state.initialized, gone),
            deleting={
                each: name for each, name in group.state.deleting.items() if each in kept or each not in requested
            },
        )
        self._commit_change(group, state, written)

    def _partitions(self, state: StateMetadata, deleted_ids: Iterable[bytes]) -> Iterable[TopicPartition]:
        """Returns all partitions of the topics that may have state; every partition of a topic whose deletion was
        started."""
        topics, named = self._environment.image().topics_by_id, state.partitions()
        for topic_id in deleted_ids:
            partitions = set(named.get(topic_id, ()))
            if topic_id in state.deleting and topic_id in topics:
                partitions |= topics[topic_id].partitions.keys()
            for partition in sorted(partitions):
                yield topic_id, partition


def _partitions(topics: Mapping[bytes, Topic]) -> list[TopicPartition]:
    return [(topic_id, partition) for topic_id, topic in topics.items() for partition in topic.partitions]


def _without_initialized(state: StateMetadata, deleted_ids: Collection[bytes]) -> StateMetadata:
    return state._replace(
        initialized={each: topic for each, topic in state.initialized.items() if each not in deleted_ids}
    )
