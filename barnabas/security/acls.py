"""Access control lists: the terms of an ACL, and filters of ACLs.

Knows nothing of where ACLs are kept. Follows Apache Kafka's ``AccessControlEntry``, ``ResourcePattern`` and
``AclBindingFilter`` (KIP-11, KIP-290).
"""

from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
"""As a resource name: all resources of the type. As a host: all hosts."""

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class ResourceType(IntEnum):
    """``ResourceType`` by its codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """``PatternType`` by its codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """``AclOperation`` by its codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """``AclPermissionType`` by its codes on the wire."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Resource(NamedTuple):
    """A resource that a request names."""

    type: ResourceType
    name: str


CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


class Acl(NamedTuple):
    """One entry: whether a principal may do an operation, from a host, on the resources of a pattern."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str  #: ``Type:name``; ``User:*`` means all users
    host: str
    operation: int
    permission: int


class AclFilter(NamedTuple):
    """Selects ACLs. None, and ANY of a code, select all."""

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Returns whether the filter selects the ACL.

        A name with the pattern type MATCH selects every pattern that covers a resource of this name.
        """
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return self.resource_name == acl.resource_name
        if acl.pattern_type == PatternType.PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name in (self.resource_name, WILDCARD)


def has_unknown(codes: Acl | AclFilter) -> bool:
    """Returns whether a code is 0, with which Apache Kafka cannot parse the request."""
    return 0 in (codes.resource_type, codes.pattern_type, codes.operation, codes.permission)
