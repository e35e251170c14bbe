"""Which consumer groups there are.

Knows nothing of what happens in them.
"""

import logging

from barnabas.errors import GroupIdNotFound, KafkaError, NotCoordinator
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.subscriptions import Topics
from barnabas.groups.environment import Environment
from barnabas.groups.ledger import Written

logger = logging.getLogger(__name__)


class Directory:
    """The consumer groups among all groups of a coordinator."""

    def __init__(self, environment: Environment, topics: Topics) -> None:
        self.environment = environment
        self.topics = topics

    def find(self, group_id: str) -> ConsumerGroup | None:
        group = self.environment.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def require(self, group_id: str) -> ConsumerGroup:
        """:raises GroupIdNotFound: there is no consumer group of that name"""
        group = self.environment.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is not None:
            raise wrong_kind(group_id)
        if not self.environment.is_coordinator(group_id):
            raise NotCoordinator
        raise GroupIdNotFound(f"There is no group {group_id}.")

    def all(self) -> list[ConsumerGroup]:
        return [group for group in self.environment.groups.values() if isinstance(group, ConsumerGroup)]

    def new_group(self, group_id: str) -> ConsumerGroup:
        """A group that is empty, and not here yet."""
        return ConsumerGroup(group_id, self.topics.id_of)


def wrong_kind(group_id: str) -> GroupIdNotFound:
    return GroupIdNotFound(f"Group {group_id} is not a consumer group.")


def log_failure(group_id: str) -> Written:
    """For what nobody waits for."""

    def done(error: type[KafkaError] | None) -> None:
        if error is not None:
            logger.warning("group %s: a change was not written: %s", group_id, error.__name__)

    return done
