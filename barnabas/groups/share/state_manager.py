"""Of which share partitions a share group has state: made before anybody reads them, moved, and taken away again.

Knows nothing of members. The state itself is kept by the share coordinator, whom the persister asks: what is here is
the group's record of what is there, first "about to be", then "is". Follows what Apache Kafka's
``GroupCoordinatorService`` and ``GroupMetadataManager`` do about ``ShareGroupStatePartitionMetadata``.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from barnabas.errors import (
    GroupIdNotFound,
    InvalidGroupId,
    KafkaError,
    NonEmptyGroup,
    UnknownTopicOrPartition,
)
from barnabas.groups.environment import Environment
from barnabas.groups.group import Group
from barnabas.groups.ledger import Written, log_failure
from barnabas.groups.persister import Done, Outcome, TopicPartition
from barnabas.groups.records import has_place_for
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
"""The start offset of a share partition that nobody has read of: ``share.auto.offset.reset`` decides."""

PartitionsReply = Callable[[PartitionErrors | type[KafkaError]], object]
TopicsReply = Callable[[TopicErrors | type[KafkaError]], object]


class StateManager:
    """What share groups know of the state of their partitions."""

    def __init__(self, environment: Environment, find: Callable[[str], ShareGroup]) -> None:
        """``find`` gives a share group by its name, or raises why there is none."""
        self._environment = environment
        self._find = find

    def _commit(self, group: ShareGroup, state: StateMetadata, written: Written) -> None:
        self._environment.ledger.commit(group.group_id, [records.state_record(group.group_id, state)], written)

    def _commit_change(self, group: ShareGroup, state: StateMetadata, written: Written) -> None:
        if state == group.state:
            written(None)
        else:
            self._commit(group, state, written)

    def _is_here(self, group: ShareGroup) -> bool:
        """Whether the group is still the one that it was when the persister was asked."""
        return self._environment.groups.get(group.group_id) is group

    # ----------------------------------------------------------- to be read

    def uninitialized(self, group: ShareGroup, topic_names: Collection[str]) -> dict[bytes, Topic]:
        """Partitions of those topics that have no state and nobody is about to make one for.

        An attempt that was not heard of for ``group.share.initialize.retry.interval.ms`` is none.
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
        """Somebody is about to make their state: nobody else has to."""
        now_ms = self._environment.clock.time_ms()
        group.initializing_since_ms.update((at, now_ms) for at in _partitions(topics))

    def unmark_initializing(self, group: ShareGroup, topics: Mapping[bytes, Topic]) -> None:
        for at in _partitions(topics):
            group.initializing_since_ms.pop(at, None)

    def initialize(self, group: ShareGroup, topics: Mapping[bytes, Topic]) -> None:
        """Have the state of those partitions made: that it is about to be is written."""
        if not topics:
            return
        self.mark_initializing(group, topics)
        starts = {
            topic_id: dict.fromkeys(sorted(topic.partitions), NO_START_OFFSET) for topic_id, topic in topics.items()
        }

        def done(outcomes: Mapping[TopicPartition, Outcome]) -> None:
            failed = [
                f"{topics[topic_id].name}-{partition} ({outcome.error.__name__})"
                for (topic_id, partition), outcome in outcomes.items()
                if outcome.error is not None
            ]
            if failed:
                logger.warning("group %s: no state could be made of %s", group.group_id, ", ".join(failed))
            self._initialized(
                group, topics, outcomes, log_failure(group.group_id, "of which partitions there is state")
            )

        self._environment.persister().initialize(group.group_id, starts, group.epoch, done)

    def _initialized(
        self,
        group: ShareGroup,
        topics: Mapping[bytes, Topic],
        outcomes: Mapping[TopicPartition, Outcome],
        written: Written,
    ) -> None:
        """Write down of which of them there is state now.

        Where it could not be made there may be some all the same, of an attempt whose success could not be written: it
        remains to be made, so that whoever deletes the group asks for it, too. (Apache Kafka forgets it.)
        """
        for at in outcomes:
            group.initializing_since_ms.pop(at, None)
        if not self._is_here(group):
            written(GroupIdNotFound)
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
        """Of topics that are no more there is no state either: the share coordinator has seen to it."""
        state = group.state.of_topics(self._environment.image().topics_by_id.keys())
        self._commit_change(group, state, log_failure(group.group_id, "of which partitions there is state"))

    # -------------------------------------------------------------- offsets

    def initialized(self, group_id: str) -> dict[bytes, list[int]]:
        """The share partitions of a group that have state, by topic id; none of a group that is not there.

        :raises NotCoordinator: the group would not be here
        """
        try:
            group = self._find(group_id)
        except GroupIdNotFound:
            return {}
        topics = group.state.initialized
        return {each: sorted(topics[each].partitions) for each in records.uuid_order(topics)}

    def alter_offsets(self, group_id: str, starts: Mapping[bytes, Mapping[int, int]], reply: PartitionsReply) -> None:
        """AlterShareGroupOffsets, of topics and partitions that exist; a group comes into being by it.

        :raises KafkaError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND for one of another kind, NON_EMPTY_GROUP
        """
        group = self._to_be_altered(group_id)
        by_id = self._environment.image().topics_by_id
        topics = {each: Topic(by_id[each].name, frozenset(partitions)) for each, partitions in starts.items()}
        if not topics:
            reply({})
            return

        def written(error: type[KafkaError] | None) -> None:
            if error is not None:
                self.unmark_initializing(group, topics)
                reply(error)
                return
            current = self._environment.groups.get(group_id)
            if not isinstance(current, ShareGroup):
                reply(GroupIdNotFound)
                return

            def initialized(outcomes: Mapping[TopicPartition, Outcome]) -> None:
                told = {at: outcome.error for at, outcome in outcomes.items()}
                self._initialized(
                    current, topics, outcomes, lambda failure: reply(told if failure is None else failure)
                )

            self.mark_initializing(current, topics)  # who joins now must not have it begin anywhere else
            self._environment.persister().initialize(group_id, starts, current.epoch, initialized)

        self.mark_initializing(group, topics)
        self._commit(group, group.state.with_initializing(topics), written)

    def _to_be_altered(self, group_id: str) -> ShareGroup:
        """The group, which nobody is in; one that there is not is about to be."""
        if not has_place_for(group_id):
            raise InvalidGroupId("Group ids of that length cannot be kept.")
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
        """DeleteShareGroupOffsets, of topics that exist: UNKNOWN_TOPIC_OR_PARTITION where the group has none of it.

        :raises KafkaError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP
        """
        group = self._find(group_id)
        if not group.is_empty:
            raise NonEmptyGroup
        state = group.state
        doomed = [each for each in dict.fromkeys(topic_ids) if each in state.initialized or each in state.deleting]
        errors: TopicErrors = {each: None if each in doomed else UnknownTopicOrPartition for each in topic_ids}
        if not doomed:
            reply(errors)
            return

        def deleted(outcomes: Mapping[TopicPartition, Outcome]) -> None:
            for (topic_id, _), outcome in outcomes.items():
                errors[topic_id] = errors[topic_id] or outcome.error
            self._deleted(group, outcomes, lambda error: reply(errors if error is None else error))

        self._delete_state(group, doomed, _without_initialized(state, doomed), deleted, reply)

    # --------------------------------------------------------------- groups

    def delete_group(self, group: Group, written: Written) -> None:
        """Take away the state of all partitions of a share group that nobody is in, and then the group."""
        assert isinstance(group, ShareGroup)
        state = group.state
        doomed = list(dict.fromkeys([*state.initialized, *state.initializing, *state.deleting]))

        def deleted(outcomes: Mapping[TopicPartition, Outcome]) -> None:
            error = next((each.error for each in outcomes.values() if each.error is not None), None)
            if error is None and not group.is_empty:  # somebody came while it was being done
                error = NonEmptyGroup
            if error is not None:
                self._deleted(group, outcomes, lambda failure: written(failure or error))
            elif not self._is_here(group):
                written(GroupIdNotFound)
            elif group.state.initialized or group.state.initializing:
                self.delete_group(group, written)  # somebody came, had state made, and left again
            else:
                self._environment.ledger.commit(group.group_id, group.tombstones(), written)

        if doomed:
            self._delete_state(group, doomed, StateMetadata(), deleted, written)
        else:
            deleted({})

    def _delete_state(
        self,
        group: ShareGroup,
        doomed: Collection[bytes],
        left: StateMetadata,
        done: Done,
        refused: Callable[[type[KafkaError]], object],
    ) -> None:
        """Write that the state of those topics is about to go, and have it deleted."""
        partitions = list(self._partitions(group.state, doomed))
        names = {each: topic.name for part in group.state[:2] for each, topic in part.items()} | dict(
            group.state.deleting
        )
        state = left._replace(deleting={**left.deleting, **{each: names[each] for each in doomed}})

        def written(error: type[KafkaError] | None) -> None:
            if error is not None:
                refused(error)
            else:
                self._environment.persister().delete(group.group_id, partitions, done)

        self._commit(group, state, written)

    def _deleted(self, group: ShareGroup, outcomes: Mapping[TopicPartition, Outcome], written: Written) -> None:
        """Write down of what there is no state any more: what was made before it was deleted is gone, too."""
        if not self._is_here(group):
            written(GroupIdNotFound)
            return
        gone = [at for at, outcome in outcomes.items() if outcome.error is None]
        kept = {topic_id for (topic_id, _), outcome in outcomes.items() if outcome.error is not None}
        asked = {topic_id for topic_id, _ in outcomes}
        state = group.state._replace(
            initialized=without_partitions(group.state.initialized, gone),
            deleting={each: name for each, name in group.state.deleting.items() if each in kept or each not in asked},
        )
        self._commit_change(group, state, written)

    def _partitions(self, state: StateMetadata, doomed: Iterable[bytes]) -> Iterable[TopicPartition]:
        """All partitions of those topics that may have state; of what was to be deleted before, all that there are."""
        topics, named = self._environment.image().topics_by_id, state.partitions()
        for topic_id in doomed:
            partitions = set(named.get(topic_id, ()))
            if topic_id in state.deleting and topic_id in topics:
                partitions |= topics[topic_id].partitions.keys()
            for partition in sorted(partitions):
                yield topic_id, partition


def _partitions(topics: Mapping[bytes, Topic]) -> list[TopicPartition]:
    return [(topic_id, partition) for topic_id, topic in topics.items() for partition in topic.partitions]


def _without_initialized(state: StateMetadata, doomed: Collection[bytes]) -> StateMetadata:
    return state._replace(initialized={each: topic for each, topic in state.initialized.items() if each not in doomed})
