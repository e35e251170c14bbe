"""Decides what a principal may do, by the ACLs of the cluster.

Knows nothing of requests. Follows Apache Kafka's ``StandardAuthorizer`` and ``StandardAuthorizerData``: a matching DENY
takes precedence over every ALLOW, and super users may do everything.
"""

import logging
from bisect import insort
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.security.acls import WILDCARD, Acl, Operation, PatternType, Permission, Resource, ResourceType

logger = logging.getLogger("kafka.authorizer.logger")

IMPLIED_BY: Final[dict[int, frozenset[int]]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""The operations whose ALLOW implies another operation. A DENY implies no other."""

EVERYBODY: Final = "User:*"

ANY_NAME: Final = "hardcode"
"""The resource name with which Apache Kafka authorizes resources without ACLs of their own."""

MOST_DECISIONS: Final = 20_000
"""The maximum number of cached decisions. Clients can name any resource, so the cache has to be bounded."""


class Requester(NamedTuple):
    """The principal and the host of a request."""

    principal: str  #: ``Type:name``
    host: str  #: the IP address


class _Patterns:
    """The ACLs of one resource type, by the names of their patterns."""

    __slots__ = ("_counts", "lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, dict[Acl, None]] = {}
        self.prefixed: dict[str, dict[Acl, None]] = {}
        self.lengths: list[int] = []  #: the distinct lengths of the prefixes, sorted
        self._counts: dict[int, int] = {}  #: the prefixes of each length

    def add(self, acl: Acl) -> None:
        name = acl.resource_name
        if acl.pattern_type != PatternType.PREFIXED:
            self.literal.setdefault(name, {})[acl] = None
            return
        if name not in self.prefixed:
            self.prefixed[name] = {}
            if len(name) not in self._counts:
                insort(self.lengths, len(name))
            self._counts[len(name)] = self._counts.get(len(name), 0) + 1
        self.prefixed[name][acl] = None

    def remove(self, acl: Acl) -> None:
        name = acl.resource_name
        by_name = self.prefixed if acl.pattern_type == PatternType.PREFIXED else self.literal
        acls = by_name.get(name)
        if acls is None:
            return
        acls.pop(acl, None)
        if acls:
            return
        del by_name[name]
        if by_name is self.prefixed:
            self._counts[len(name)] -= 1
            if not self._counts[len(name)]:
                del self._counts[len(name)]
                self.lengths.remove(len(name))

    def of(self, name: str) -> Iterator[Acl]:
        """Yields the ACLs whose pattern covers the resource of this name."""
        yield from self.literal.get(name, ())
        if name != WILDCARD:
            yield from self.literal.get(WILDCARD, ())
        for length in self.lengths:
            if length > len(name):
                break
            yield from self.prefixed.get(name[:length], ())

    def __iter__(self) -> Iterator[Acl]:
        for by_name in (self.literal, self.prefixed):
            for acls in by_name.values():
                yield from acls


class Rule(NamedTuple):
    """The reason for a decision."""

    allows: bool
    text: str | Acl  #: the ACL that decides, or Kafka's name of another rule

    def __str__(self) -> str:
        return self.text if isinstance(self.text, str) else f"MatchingAcl(acl={_shown(self.text)})"


SUPER_USER: Final = Rule(True, "SuperUser")
DEFAULT_DENY: Final = Rule(False, "DefaultDeny")
DEFAULT_ALLOW: Final = Rule(True, "DefaultAllow")


class Authorizer:
    """Authorizes requests to one cluster. :meth:`change` applies changes of the ACLs.

    >>> authorizer = Authorizer(super_users={"User:admin"})
    >>> alice, orders = Requester("User:alice", "10.0.0.1"), Resource(ResourceType.TOPIC, "orders")
    >>> acl = Acl(ResourceType.TOPIC, "ord", PatternType.PREFIXED, "User:alice", "*", Operation.READ, Permission.ALLOW)
    >>> authorizer.change(added=[acl])
    >>> authorizer.allows(alice, Operation.READ, orders), authorizer.allows(alice, Operation.WRITE, orders)
    (True, False)
    """

    def __init__(self, super_users: Iterable[str] = (), *, allow_everyone_if_no_acl_found: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._without_acls = DEFAULT_ALLOW if allow_everyone_if_no_acl_found else DEFAULT_DENY
        self._patterns: dict[int, _Patterns] = {kind: _Patterns() for kind in ResourceType}
        self._decisions: dict[tuple[Requester, int, Resource], bool] = {}

    def change(self, added: Iterable[Acl] = (), removed: Iterable[Acl] = ()) -> None:
        """Adds ACLs, then removes others. Decisions change at once. Adding an existing ACL and removing a missing one
        have no effect.
        """
        for acl in added:
            self._patterns[acl.resource_type].add(acl)
        for acl in removed:
            self._patterns[acl.resource_type].remove(acl)
        self._decisions.clear()

    # ------------------------------------------------------------ decisions

    def allows(self, requester: Requester, operation: int, resource: Resource) -> bool:
        """Returns whether the requester may do the operation."""
        key = requester, operation, resource
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self.rule(requester, operation, resource).allows
            if len(self._decisions) >= MOST_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = allowed
        return allowed

    def rule(self, requester: Requester, operation: int, resource: Resource) -> Rule:
        """Returns the rule that decides, with the decision."""
        if requester.principal in self._super_users:
            return SUPER_USER
        has_acls = False
        allowing: Acl | None = None
        operations = IMPLIED_BY.get(operation, (operation,))
        for acl in self._patterns[resource.type].of(resource.name):
            has_acls = True
            if not _is_about(acl, requester):
                continue
            if acl.permission == Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return Rule(False, acl)
            elif allowing is None and (acl.operation == Operation.ALL or acl.operation in operations):
                allowing = acl
        if allowing is not None:
            return Rule(True, allowing)
        return DEFAULT_DENY if has_acls else self._without_acls

    def allows_some(self, requester: Requester, operation: int, resource_type: ResourceType) -> bool:
        """Returns whether the requester may do the operation on some resource of the type.

        An allowed pattern counts unless a DENY covers all of it: the same name, a prefix of it, or all names. An
        operation that implies this one does not count (``Authorizer.authorizeByResourceType``, KIP-679).
        """
        if self.rule(requester, operation, Resource(resource_type, ANY_NAME)).allows:
            return True
        mine = [
            acl
            for acl in self._patterns[resource_type]
            if _is_about(acl, requester) and acl.operation in (operation, Operation.ALL)
        ]
        denied = [acl for acl in mine if acl.permission == Permission.DENY]
        if any(_covers_all(acl) for acl in denied):
            return False
        allowed = [acl for acl in mine if acl.permission == Permission.ALLOW]
        return any(not any(_covers(deny, acl) for deny in denied) for acl in allowed)

    # ------------------------------------------------------------ the log

    def audit(self, requester: Requester, operation: int, resource: Resource, request: str, count: int = 1) -> None:
        """Logs a decision in the form of Apache Kafka: a refusal at INFO, anything else at DEBUG.

        :param request: the name of the API
        :param count: how often the request names the resource
        """
        rule = self.rule(requester, operation, resource)
        logger.log(
            logging.DEBUG if rule.allows else logging.INFO,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s "
            "with resourceRefCount = %s based on rule %s",
            requester.principal,
            "Allowed" if rule.allows else "Denied",
            Operation(operation).name,
            requester.host,
            _title(resource.type),
            resource.name,
            request,
            count,
            rule,
        )


def _shown(acl: Acl) -> str:
    """Returns the ACL as ``StandardAcl.toString`` writes it."""
    return (
        f"StandardAcl(resourceType={ResourceType(acl.resource_type).name}, resourceName={acl.resource_name}, "
        f"patternType={PatternType(acl.pattern_type).name}, principal={acl.principal}, host={acl.host}, "
        f"operation={Operation(acl.operation).name}, permissionType={Permission(acl.permission).name})"
    )


def _title(resource_type: int) -> str:
    """Returns the name as ``SecurityUtils.resourceTypeName`` writes it: ``TransactionalId``."""
    return ResourceType(resource_type).name.title().replace("_", "")


def _is_about(acl: Acl, requester: Requester) -> bool:
    return acl.principal in (requester.principal, EVERYBODY) and acl.host in (requester.host, WILDCARD)


def _covers_all(deny: Acl) -> bool:
    return deny.pattern_type == PatternType.LITERAL and deny.resource_name == WILDCARD


def _covers(deny: Acl, allow: Acl) -> bool:
    """Returns whether the DENY covers all resources of the ALLOW."""
    if deny.pattern_type == PatternType.PREFIXED:
        return not _covers_all(allow) and allow.resource_name.startswith(deny.resource_name)
    return deny.pattern_type == allow.pattern_type and deny.resource_name == allow.resource_name
