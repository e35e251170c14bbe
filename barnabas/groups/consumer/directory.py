"""Finds the consumer groups among all groups of a coordinator.

Knows nothing of what happens in a group.
"""

from barnabas.errors import GroupIdNotFound
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.subscriptions import Topics
from barnabas.groups.environment import Environment


class Directory:
    """The consumer groups of a coordinator."""

    def __init__(self, environment: Environment, topics: Topics) -> None:
        self.environment = environment
        self.topics = topics

    def find(self, group_id: str) -> ConsumerGroup | None:
        group = self.environment.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def require(self, group_id: str, kind: str = "Group") -> ConsumerGroup:
        """Returns the consumer group with that id.

        :param kind: what the error calls a missing group
        :raises GroupIdNotFound: there is none
        """
        group = self.environment.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is not None:
            raise wrong_kind(group_id)
        raise GroupIdNotFound(f"{kind} {group_id} not found.")

    def all(self) -> list[ConsumerGroup]:
        return [group for group in self.environment.groups.values() if isinstance(group, ConsumerGroup)]

    def new_group(self, group_id: str) -> ConsumerGroup:
        """Returns an empty group, which is not added to the coordinator's groups."""
        return ConsumerGroup(group_id, self.topics.id_of)


def wrong_kind(group_id: str) -> GroupIdNotFound:
    return GroupIdNotFound(f"Group {group_id} is not a consumer group.")
