"""Whether groups may change between the classic and the consumer protocol while they have members.

Knows nothing of what such a change is. An empty group may always change: nobody is in it who could mind.
"""

from typing import Final, NamedTuple

from barnabas.groups.config import Settings

NAME: Final = "group.consumer.migration.policy"


class Policy(NamedTuple):
    """Kafka's ``ConsumerGroupMigrationPolicy``."""

    allows_upgrade: bool
    """A member of the consumer protocol may come to a classic group that has members."""
    allows_downgrade: bool
    """A consumer group whose last member of the consumer protocol goes is a classic one from then on."""

    @property
    def allows_both_protocols(self) -> bool:
        """Members of both may be in a consumer group."""
        return self.allows_upgrade or self.allows_downgrade


POLICIES: Final = {
    "disabled": Policy(False, False),
    "upgrade": Policy(True, False),
    "downgrade": Policy(False, True),
    "bidirectional": Policy(True, True),
}


def policy_of(settings: Settings) -> Policy:
    return POLICIES[settings[NAME].lower()]
