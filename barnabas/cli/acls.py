"""``barnabas acls``, with the options of kafka-acls.

Knows nothing of the broker's internals; it uses an admin client.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, TypeVar

import click

from barnabas.cli.acl_options import acls_of, as_filter, check, filters_of
from barnabas.cli.client import Cluster, check_code, cluster_options
from barnabas.cli.output import json_option, show_json, show_table
from barnabas.cli.requests import send_to_any
from barnabas.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest

COLUMNS = ["resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission"]

F = TypeVar("F", bound=Callable[..., Any])


def resource_options(command: F) -> F:
    """Adds the options that name resources, and operations on them."""
    for option in (
        click.option("--idempotent", is_flag=True, help="With --producer: allow idempotent writes to the cluster."),
        click.option("--consumer", is_flag=True, help="Allow what a consumer needs on --topic and --group."),
        click.option("--producer", is_flag=True, help="Allow what a producer needs on --topic and --transactional-id."),
        click.option(
            "--operation", "operations", multiple=True, help="Read, Write, DescribeConfigs, ...; All without it."
        ),
        click.option(
            "--resource-pattern-type",
            type=click.Choice(["literal", "prefixed", "any", "match"], case_sensitive=False),
            default="literal",
            show_default=True,
            help="How a name selects resources. With --list and --remove, match selects all patterns that cover it.",
        ),
        click.option("--user-principal", multiple=True, help="A user as a resource, for delegation tokens."),
        click.option("--delegation-token", multiple=True, help="The id of a delegation token."),
        click.option("--transactional-id", multiple=True, help="A transactional id."),
        click.option("--cluster", "cluster_", is_flag=True, help="The cluster."),
        click.option("--group", multiple=True, help="A group; '*' is all groups."),
        click.option("--topic", multiple=True, help="A topic; '*' is all topics."),
    ):
        command = option(command)
    return command


@click.command()
@click.option("--add", "action", flag_value="add", help="Add ACLs.")
@click.option("--remove", "action", flag_value="remove", help="Remove ACLs.")
@click.option("--list", "action", flag_value="list", help="List the ACLs on these resources, or all ACLs.")
@resource_options
@click.option("--allow-principal", multiple=True, metavar="USER:NAME", help="A principal to allow; 'User:*' is all.")
@click.option("--deny-principal", multiple=True, metavar="USER:NAME", help="A principal to deny.")
@click.option("--allow-host", multiple=True, help="An address that the allowed principals come from; any without it.")
@click.option("--deny-host", multiple=True, help="An address that the denied principals come from; any without it.")
@click.option("--principal", multiple=True, metavar="USER:NAME", help="With --list: only ACLs of this principal.")
@click.option("--force", is_flag=True, help="Remove without asking.")
@json_option
@cluster_options
def acls(cluster: Cluster, action: str | None, as_json: bool, force: bool, cluster_: bool, **given: Any) -> None:
    """Allow and deny principals operations on resources.

    \b
    barnabas acls --add --allow-principal User:alice --producer --topic orders
    barnabas acls --add --allow-principal User:bob --consumer --topic orders --group billing
    barnabas acls --list --topic orders --resource-pattern-type match
    """
    if action is None:
        raise click.UsageError("One of --add, --remove and --list must be given")
    given["cluster"] = cluster_
    check(action, given)
    wanted = acls_of(given)
    if action == "remove" and not force:
        _ask(given, wanted)
    with cluster.admin() as admin:
        if action == "add":
            rows = add(admin, wanted)
        elif action == "remove":
            rows = remove(admin, [as_filter(acl) for acl in wanted] or filters_of(given))
        else:
            rows = listed(admin, filters_of(given), given["principal"])
    if as_json:
        show_json(rows)
    else:
        show_table(rows, COLUMNS, title={"add": "Added", "remove": "Removed", "list": None}[action], empty="No ACLs")


def _ask(given: dict[str, Any], wanted: list[Acl]) -> None:
    if wanted:
        what = f"these {len(wanted)} ACLs"
        show_table([_row(acl) for acl in wanted], COLUMNS)
    else:
        what = "all ACLs of " + ", ".join(f"{_name(ResourceType, each[0])} {each[1]}" for each in filters_of(given))
    click.confirm(f"Remove {what}?", abort=True, err=True)


def add(admin: Any, wanted: list[Acl]) -> list[dict[str, Any]]:
    """Adds ACLs, and returns them as rows. :raises click.ClickException: the broker refuses one"""
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in wanted
    ]
    response = send_to_any(admin, CreateAclsRequest(creations=creations))
    for result in response.results:
        check_code(result.error_code, result.error_message)
    return [_row(acl) for acl in wanted]


def remove(admin: Any, filters: list[AclFilter]) -> list[dict[str, Any]]:
    """Removes the ACLs that filters select, and returns them as rows. :raises click.ClickException: it is refused"""
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**_fields(each)) for each in filters])
    found: dict[Acl, None] = {}
    for result in send_to_any(admin, request).filter_results:
        check_code(result.error_code, result.error_message)
        for each in result.matching_acls:
            check_code(each.error_code, each.error_message)
            acl = Acl(each.resource_type, each.resource_name, each.pattern_type, each.principal, each.host,
                      each.operation, each.permission_type)  # fmt: skip
            found[acl] = None
    return _rows(found)


def listed(admin: Any, filters: list[AclFilter], principals: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Returns the ACLs that filters select, as rows, of these principals if any are given."""
    found: dict[Acl, None] = {}
    for each in filters:
        response = send_to_any(admin, DescribeAclsRequest(**_fields(each)))
        check_code(response.error_code, response.error_message)
        for resource in response.resources:
            for entry in resource.acls:
                acl = Acl(resource.resource_type, resource.resource_name, resource.pattern_type, entry.principal,
                          entry.host, entry.operation, entry.permission_type)  # fmt: skip
                if not principals or acl.principal in principals:
                    found[acl] = None
    return _rows(found)


def _fields(selected: AclFilter) -> dict[str, Any]:
    """Returns a filter as the fields of a request."""
    return {
        "resource_type_filter": selected.resource_type,
        "resource_name_filter": selected.resource_name,
        "pattern_type_filter": selected.pattern_type,
        "principal_filter": selected.principal,
        "host_filter": selected.host,
        "operation": selected.operation,
        "permission_type": selected.permission,
    }


def _rows(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    return [_row(acl) for acl in sorted(acls)]


def _row(acl: Acl) -> dict[str, Any]:
    return {
        **acl._asdict(),
        "resource_type": _name(ResourceType, acl.resource_type),
        "pattern_type": _name(PatternType, acl.pattern_type),
        "operation": _name(Operation, acl.operation),
        "permission": _name(Permission, acl.permission),
    }


def _name(kind: type[IntEnum], code: int) -> str:
    """Returns the name of a code; a code that a newer broker has sent is shown as a number."""
    return kind(code).name if code in list(kind) else str(code)
