"""The configs of authorization, two of which Kafka's brokers do not declare: the authorizer reads them itself.

Knows nothing of ACLs. Apache Kafka's ``StandardAuthorizer.configure``.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.config.validators import ConfigError

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The only authorizer there is, by its name in Apache Kafka."""

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"

OWN_CONFIGS: Final = frozenset({SUPER_USERS, ALLOW_EVERYONE})
"""Configs of the authorizer, which no broker declares. DescribeConfigs has them as configs of an unknown type."""


def check_class(name: str) -> None:
    """Checks ``authorizer.class.name``.

    :raises ConfigError: it names another class
    """
    if name not in ("", STANDARD_AUTHORIZER):
        raise ConfigError("authorizer.class.name", name, f"{STANDARD_AUTHORIZER}, or empty")


def super_users(originals: Mapping[str, str]) -> frozenset[str]:
    """Returns the principals of ``super.users``, which semicolons separate.

    >>> sorted(super_users({"super.users": "User:admin; User:CN=a,O=b;"}))
    ['User:CN=a,O=b', 'User:admin']
    """
    return frozenset(each.strip() for each in originals.get(SUPER_USERS, "").split(";") if each.strip())


def allows_everyone(originals: Mapping[str, str]) -> bool:
    """Returns whether a resource without ACLs is open to everybody."""
    return originals.get(ALLOW_EVERYONE, "").lower() == "true"
