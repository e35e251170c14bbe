"""The config ``group.consumer.migration.policy``: which groups may change their protocol while they have members.

Knows nothing of how they change it. An empty group may always change.
"""

from typing import Final, NamedTuple

from barnabas.config.settings import Settings

NAME: Final = "group.consumer.migration.policy"


class Policy(NamedTuple):
    """Kafka's ``ConsumerGroupMigrationPolicy``."""

    allows_upgrade: bool
    """A classic group that is not empty may become a consumer group."""
    allows_downgrade: bool
    """A consumer group may become a classic group when its last member of the consumer protocol leaves."""

    @property
    def allows_both_protocols(self) -> bool:
        """Whether members of both protocols may be in one group."""
        return self.allows_upgrade or self.allows_downgrade


POLICIES: Final = {
    "disabled": Policy(False, False),
    "upgrade": Policy(True, False),
    "downgrade": Policy(False, True),
    "bidirectional": Policy(True, True),
}


def policy_of(settings: Settings) -> Policy:
    return POLICIES[settings[NAME].lower()]
