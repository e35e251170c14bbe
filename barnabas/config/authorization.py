"""The configs of authorization. The authorizer reads two of them itself, so that Kafka's brokers do not declare these.

Knows nothing of ACLs. Apache Kafka's ``StandardAuthorizer.configure``.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.config.validators import ConfigError

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The only supported authorizer, by its name in Apache Kafka."""

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"

OWN_CONFIGS: Final = frozenset({SUPER_USERS, ALLOW_EVERYONE})
"""Configs of the authorizer, which the broker does not declare. DescribeConfigs returns them with an unknown type."""


def check_class(name: str) -> None:
    """Checks ``authorizer.class.name``.

    :raises ConfigError: the class is another one
    """
    if name not in ("", STANDARD_AUTHORIZER):
        raise ConfigError("authorizer.class.name", name, f"{STANDARD_AUTHORIZER}, or empty")


def super_users(originals: Mapping[str, str]) -> frozenset[str]:
    """Returns the principals of ``super.users``, which are separated by semicolons.

    >>> sorted(super_users({"super.users": "User:admin; User:CN=a,O=b;"}))
    ['User:CN=a,O=b', 'User:admin']
    """
    return frozenset(each.strip() for each in originals.get(SUPER_USERS, "").split(";") if each.strip())


def allows_everyone(originals: Mapping[str, str]) -> bool:
    """Returns whether everyone may access a resource without ACLs."""
    return originals.get(ALLOW_EVERYONE, "").lower() == "true"
