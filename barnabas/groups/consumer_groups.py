"""All consumer groups of a coordinator: heartbeats, descriptions, and changes of topics.

Knows nothing of requests and logs. Follows the parts of Apache Kafka's ``GroupMetadataManager`` for consumer groups.
"""

from collections.abc import Collection, Mapping

from barnabas.errors import KafkaError
from barnabas.groups.consumer.directory import Directory
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.leaving import Leaving
from barnabas.groups.consumer.member import Member
from barnabas.groups.consumer.membership import Membership
from barnabas.groups.consumer.messages import (
    LEAVING,
    LEAVING_STATIC,
    DescribedGroup,
    DescribedMember,
    Heartbeat,
    HeartbeatReply,
    HeartbeatResult,
    NamedPartitions,
)
from barnabas.groups.consumer.replay import Replay
from barnabas.groups.consumer.subscriptions import Topics
from barnabas.groups.environment import Environment
from barnabas.groups.migration.classic_members import ClassicMembers
from barnabas.groups.migration.downgrading import Downgrading
from barnabas.groups.migration.upgrading import Upgrading


class ConsumerGroups:
    """The consumer groups whose coordinator this node is."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._seen = environment.image()
        topics = Topics(environment.image)
        self.directory = Directory(environment, topics)
        self._downgrading = downgrading = Downgrading(self.directory)
        self.leaving = Leaving(self.directory, downgrading)
        self.membership = Membership(self.directory, self.leaving, Upgrading(self.directory))
        self.classic = ClassicMembers(self.membership, self.leaving, downgrading)
        """The members that use the classic protocol."""
        self._replay = Replay(environment.groups, self.directory.new_group)
        self.appliers = self._replay.appliers

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles a ConsumerGroupHeartbeat. Replies once its records are durable."""
        try:
            if request.member_epoch in (LEAVING, LEAVING_STATIC):
                self.leaving.leave(request, reply)
            else:
                self.membership.heartbeat(request, reply)
        except KafkaError as error:
            reply(HeartbeatResult.refused(error))
        finally:
            # Members of an upgraded classic group get REBALANCE_IN_PROGRESS, and rejoin.
            self._environment.classic.give_answers()

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one group.

        :raises GroupIdNotFound: there is no consumer group with that id
        """
        group = self.directory.require(group_id)
        return DescribedGroup(
            group.state_name,
            group.epoch,
            group.assignment_epoch,
            self.membership.assignor_of(group),
            [self._describe(group, member) for member in group.members.values()],
        )

    def _describe(self, group: ConsumerGroup, member: Member) -> DescribedMember:
        has = {topic_id: [*partitions] for topic_id, partitions in member.assigned.items()}
        for topic_id, partitions in member.revoking.items():
            has.setdefault(topic_id, []).extend(partitions)
        return DescribedMember(
            member.member_id,
            member.instance_id,
            member.rack_id,
            member.epoch,
            member.client_id,
            member.client_host,
            sorted(member.topic_names),
            member.topic_regex,
            self._named(has),
            self._named(group.target_of(member)),
            member.classic is not None,
        )

    def _named(self, partitions: Mapping[bytes, Collection[int]]) -> NamedPartitions:
        """Returns the partitions with the names of their topics, without deleted topics."""
        topics = self._environment.image().topics_by_id
        return [
            (topic_id, topics[topic_id].name, sorted(partitions[topic_id]))
            for topic_id in partitions
            if topic_id in topics
        ]

    def start(self) -> None:
        """Starts sessions, and rebalances that were interrupted, once the log is loaded."""
        self.leaving.start()
        self._downgrading.resume(self._replay.deleted or {})
        self._replay.deleted = None

    def topics_changed(self, names: Collection[str]) -> None:
        """Notes that these topics were created or deleted, or have more partitions.

        Their subscribers refresh them with the next heartbeat. New topics make regular expressions due.
        """
        seen, image = self._seen, self._environment.image()
        self._seen = image
        self.directory.topics.forget(names)
        for name in names:
            topic, former = image.topics_by_name.get(name), seen.topics_by_name.get(name)
            if topic is not None and (former is None or former.id != topic.id):
                self.membership.new_topics_at = image.offset
        for group in self.directory.all():
            if not group.topics.keys().isdisjoint(names):
                group.request_refresh()
