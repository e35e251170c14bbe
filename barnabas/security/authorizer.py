"""Decides what a principal may do, by the ACLs of the cluster.

Knows nothing of requests. Rules of Apache Kafka's ``StandardAuthorizer`` and ``StandardAuthorizerData``: a DENY that
matches goes before every ALLOW; super users may do everything.
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
"""Operations whose ALLOW allows another one, too. A DENY implies nothing."""

EVERYBODY: Final = "User:*"

MOST_DECISIONS: Final = 20_000
"""Decisions that are kept. Clients can name any resource, so the number has to be bounded."""


class Requester(NamedTuple):
    """Who asks, and from where."""

    principal: str  #: ``Type:name``
    host: str  #: the textual address


class _Patterns:
    """The ACLs of one resource type, by the names of their patterns."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, list[Acl]] = {}
        self.prefixed: dict[str, list[Acl]] = {}
        self.lengths: list[int] = []  #: of the prefixes, each once, sorted

    def add(self, acl: Acl) -> None:
        if acl.pattern_type == PatternType.PREFIXED:
            if len(acl.resource_name) not in self.lengths:
                insort(self.lengths, len(acl.resource_name))
            self.prefixed.setdefault(acl.resource_name, []).append(acl)
        else:
            self.literal.setdefault(acl.resource_name, []).append(acl)

    def remove(self, acl: Acl) -> None:
        by_name = self.prefixed if acl.pattern_type == PatternType.PREFIXED else self.literal
        acls = by_name[acl.resource_name]
        acls.remove(acl)
        if not acls:
            del by_name[acl.resource_name]
            if by_name is self.prefixed and all(len(name) != len(acl.resource_name) for name in by_name):
                self.lengths.remove(len(acl.resource_name))

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


class Authorizer:
    """The decisions of one cluster. :meth:`change` keeps it in step with the ACLs.

    >>> authorizer = Authorizer(super_users={"User:admin"})
    >>> alice, orders = Requester("User:alice", "10.0.0.1"), Resource(ResourceType.TOPIC, "orders")
    >>> acl = Acl(ResourceType.TOPIC, "ord", PatternType.PREFIXED, "User:alice", "*", Operation.READ, Permission.ALLOW)
    >>> authorizer.change(added=[acl])
    >>> authorizer.allows(alice, Operation.READ, orders), authorizer.allows(alice, Operation.WRITE, orders)
    (True, False)
    """

    def __init__(self, super_users: Iterable[str] = (), *, allow_everyone_if_no_acl_found: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._without_acls = allow_everyone_if_no_acl_found
        self._patterns: dict[int, _Patterns] = {kind: _Patterns() for kind in ResourceType}
        self._decisions: dict[tuple[Requester, int, Resource], bool] = {}

    def change(self, added: Iterable[Acl] = (), removed: Iterable[Acl] = ()) -> None:
        """Adds and removes ACLs. Decisions change at once."""
        for acl in removed:
            self._patterns[acl.resource_type].remove(acl)
        for acl in added:
            self._patterns[acl.resource_type].add(acl)
        self._decisions.clear()

    # ------------------------------------------------------------ decisions

    def allows(self, requester: Requester, operation: int, resource: Resource, *, is_logged: bool = True) -> bool:
        """Returns whether the requester may do the operation, and logs the decision as Apache Kafka does.

        :param is_logged: False where the decision only filters what is shown
        """
        key = requester, operation, resource
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decide(requester, operation, resource)
            if len(self._decisions) >= MOST_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = allowed
        if is_logged and logger.isEnabledFor(logging.DEBUG if allowed else logging.INFO):
            self._log(requester, operation, resource, allowed)
        return allowed

    def _decide(self, requester: Requester, operation: int, resource: Resource) -> bool:
        if requester.principal in self._super_users:
            return True
        has_acls = is_allowed = False
        allowing = IMPLIED_BY.get(operation, (operation,))
        for acl in self._patterns[resource.type].of(resource.name):
            has_acls = True
            if not _is_about(acl, requester):
                continue
            if acl.permission == Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return False
            elif acl.operation == Operation.ALL or acl.operation in allowing:
                is_allowed = True
        return is_allowed if has_acls else self._without_acls

    def allows_some(self, requester: Requester, operation: int, resource_type: ResourceType) -> bool:
        """Returns whether the requester may do the operation on some resource of the type.

        An allowed pattern counts unless a DENY covers all of it: the same name, a prefix of it, or all names
        (``Authorizer.authorizeByResourceType``, KIP-679).
        """
        if requester.principal in self._super_users:
            return True
        allowing = IMPLIED_BY.get(operation, (operation,))
        patterns = self._patterns[resource_type]
        mine = [acl for acl in patterns if _is_about(acl, requester)]
        denied = [acl for acl in mine if acl.permission == Permission.DENY and _is_for(acl, (operation,))]
        if any(_covers_all(acl) for acl in denied):
            return False
        allowed = [acl for acl in mine if acl.permission == Permission.ALLOW and _is_for(acl, allowing)]
        if any(not any(_covers(deny, acl) for deny in denied) for acl in allowed):
            return True
        return self._without_acls and not allowed

    # ------------------------------------------------------------ the log

    def _log(self, requester: Requester, operation: int, resource: Resource, allowed: bool) -> None:
        logger.log(
            logging.DEBUG if allowed else logging.INFO,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s",
            requester.principal,
            "Allowed" if allowed else "Denied",
            Operation(operation).name,
            requester.host,
            _title(resource.type),
            resource.name,
        )


def _title(resource_type: int) -> str:
    """Returns the name as ``SecurityUtils.resourceTypeName`` writes it: ``TransactionalId``."""
    return ResourceType(resource_type).name.title().replace("_", "")


def _is_about(acl: Acl, requester: Requester) -> bool:
    return acl.principal in (requester.principal, EVERYBODY) and acl.host in (requester.host, WILDCARD)


def _is_for(acl: Acl, operations: Iterable[int]) -> bool:
    return acl.operation == Operation.ALL or acl.operation in operations


def _covers_all(deny: Acl) -> bool:
    return deny.pattern_type == PatternType.LITERAL and deny.resource_name == WILDCARD


def _covers(deny: Acl, allow: Acl) -> bool:
    """Returns whether the DENY leaves nothing of what the ALLOW names."""
    if deny.pattern_type == PatternType.PREFIXED:
        return not _covers_all(allow) and allow.resource_name.startswith(deny.resource_name)
    return deny.pattern_type == allow.pattern_type and deny.resource_name == allow.resource_name
