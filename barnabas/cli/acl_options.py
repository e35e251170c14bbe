"""Converts the options of ``barnabas acls`` to resource patterns, ACLs and filters.

Knows nothing of clients. Apache Kafka's ``AclCommand`` (KIP-11, KIP-290, KIP-373).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from barnabas.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

#: The option of each type of resource.
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}

#: The operations of each type of resource, beside ALL (``AclEntry.supportedOperations``).
OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DELETE, Operation.ALTER,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ, Operation.DESCRIBE, Operation.DELETE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE, Operation.ALTER, Operation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}  # fmt: skip

#: ``--producer`` on topics and transactional ids, ``--consumer`` on topics and groups.
PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}

Given = Mapping[str, Any]


class Pattern(NamedTuple):
    """A pattern of resources."""

    type: ResourceType
    name: str
    pattern_type: PatternType


def acls_of(given: Given) -> list[Acl]:
    """Returns the ACLs that the options name: each operation on each pattern, for each principal from each host.

    :raises click.UsageError: the type of resource does not have an operation, or options cannot be combined
    """
    entries = _entries(given)
    return list(
        dict.fromkeys(
            Acl(pattern.type, pattern.name, pattern.pattern_type, principal, host, operation, permission)
            for pattern, operations in _operations(given)
            for permission, principal, host in entries
            for operation in operations
        )
    )


def patterns_of(given: Given) -> list[Pattern]:
    """Returns the patterns of resources that the options name."""
    pattern_type = PatternType[given["resource_pattern_type"].upper()]
    found = [
        Pattern(resource_type, name.strip(), pattern_type)
        for option, resource_type in RESOURCES.items()
        for name in given[option]
    ]
    if given["cluster"] or (given["idempotent"] and not found):
        found.append(Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return found


def filters_of(given: Given) -> list[AclFilter]:
    """Returns filters for all ACLs on the patterns; without a pattern, one for all ACLs."""
    filters = [AclFilter(type_, name, pattern_type) for type_, name, pattern_type in patterns_of(given)]
    return filters or [AclFilter()]


def as_filter(acl: Acl) -> AclFilter:
    """Returns the filter that selects exactly this ACL, unless its pattern type is ANY or MATCH."""
    return AclFilter(*acl)


def check(action: str, given: Given) -> None:
    """Checks that the options can be combined, as ``AclCommandOptions.checkArgs`` does.

    :raises click.UsageError: they cannot
    """
    denies = given["deny_principal"] or given["deny_host"]
    shortcut = given["producer"] or given["consumer"]
    rules = (
        (given["principal"] and action != "list", "--principal goes with --list only"),
        (given["idempotent"] and not given["producer"], "--idempotent goes with --producer only"),
        (shortcut and (given["operations"] or denies), "--producer and --consumer allow certain operations: "
         "--operation, --deny-principal and --deny-host do not go with them"),
        (shortcut and not given["topic"], "--producer and --consumer need --topic"),
        (given["consumer"] and not given["group"], "--consumer needs --group"),
        (given["producer"] and not given["consumer"] and (given["group"] or given["delegation_token"]),
         "--producer takes --topic, --transactional-id, --idempotent and --cluster only"),
        (given["consumer"] and not given["producer"] and (given["cluster"] or given["transactional_id"]),
         "--consumer takes --topic and --group only"),
        (action == "add" and not (given["allow_principal"] or given["deny_principal"]),
         "--add needs --allow-principal or --deny-principal"),
        (action != "list" and not patterns_of(given), "--add and --remove need a resource: --topic, --group, "
         "--cluster, --transactional-id, --delegation-token or --user-principal"),
        (action == "add" and given["resource_pattern_type"] in ("any", "match"),
         f"--resource-pattern-type {given['resource_pattern_type']} does not go with --add"),
    )  # fmt: skip
    for is_broken, text in rules:
        if is_broken:
            raise click.UsageError(text)


def _operations(given: Given) -> list[tuple[Pattern, Sequence[Operation]]]:
    patterns = patterns_of(given)
    if not (given["producer"] or given["consumer"]):
        operations = [_operation(name) for name in given["operations"]] or [Operation.ALL]
        for pattern in patterns:
            _check_operations(pattern.type, operations)
        return [(pattern, operations) for pattern in patterns]
    found: list[tuple[Pattern, Sequence[Operation]]] = []
    for is_given, shortcut in ((given["producer"], PRODUCER), (given["consumer"], CONSUMER)):
        if is_given:
            found += [(pattern, shortcut[pattern.type]) for pattern in patterns if pattern.type in shortcut]
    if given["idempotent"]:
        found.append((Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL), (Operation.IDEMPOTENT_WRITE,)))
    return found


def _operation(name: str) -> Operation:
    """Returns the operation with a name as kafka-acls or the protocol writes it: ``DescribeConfigs``, ``ALTER``."""
    wanted = name.replace("_", "").replace("-", "").upper()
    for operation in Operation:
        if operation.name.replace("_", "") == wanted and operation not in (Operation.UNKNOWN, Operation.ANY):
            return operation
    known = ", ".join(title(each) for each in list(Operation)[2:])
    raise click.UsageError(f"--operation is {name!r}, but must be one of {known}")


def _check_operations(resource_type: ResourceType, operations: Sequence[Operation]) -> None:
    known = (*OPERATIONS[resource_type], Operation.ALL)
    unknown = [title(each) for each in operations if each not in known]
    if unknown:
        raise click.UsageError(
            f"A resource of type {title(resource_type)} has no operation {', '.join(unknown)}, "
            f"only {', '.join(map(title, known))}"
        )


def _entries(given: Given) -> list[tuple[Permission, str, str]]:
    return [
        (permission, principal.strip(), host)
        for permission, side in ((Permission.ALLOW, "allow"), (Permission.DENY, "deny"))
        for principal in given[f"{side}_principal"]
        for host in given[f"{side}_host"] or (WILDCARD,)
    ]


def title(code: Operation | ResourceType) -> str:
    """Returns the name as kafka-acls writes it: ``DescribeConfigs``."""
    return code.name.title().replace("_", "")
