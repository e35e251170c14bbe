"""``barnabas delegation-tokens``, with the options of kafka-delegation-tokens.

Knows nothing of the broker's internals; it uses an admin client (KIP-48, KIP-373).
"""

import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from barnabas.cli.client import Cluster, check_code, cluster_options
from barnabas.cli.output import json_option, show_json, show_table
from barnabas.cli.requests import send_to_any
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

COLUMNS = ["token_id", "hmac", "owner", "requester", "renewers", "issued", "expires", "ends"]
DEFAULT = -1
"""A period in milliseconds: the broker's default."""


@click.command("delegation-tokens")
@click.option("--create", "action", flag_value="create", help="Create a token.")
@click.option("--renew", "action", flag_value="renew", help="Move the expiry of a token.")
@click.option("--expire", "action", flag_value="expire", help="Expire a token.")
@click.option("--describe", "action", flag_value="describe", help="Show the tokens that this user may see.")
@click.option("--hmac", help="The HMAC of the token, as --create shows it.")
@click.option(
    "--owner-principal",
    multiple=True,
    metavar="USER:NAME",
    help="With --create: the owner, oneself without it. With --describe: only tokens of these owners.",
)
@click.option("--renewer-principal", multiple=True, metavar="USER:NAME", help="With --create: who may renew the token.")
@click.option(
    "--max-life-time-period",
    type=int,
    default=DEFAULT,
    metavar="MS",
    help="With --create: the longest life of the token; -1 is delegation.token.max.lifetime.ms.",
)
@click.option(
    "--renew-time-period",
    type=int,
    default=DEFAULT,
    metavar="MS",
    help="With --renew: the time from now to the new expiry; -1 is delegation.token.expiry.time.ms.",
)
@click.option(
    "--expiry-time-period",
    type=int,
    default=DEFAULT,
    metavar="MS",
    help="With --expire: the time from now to the new expiry; -1 is at once.",
)
@json_option
@cluster_options
def delegation_tokens(cluster: Cluster, action: str | None, as_json: bool, **given: Any) -> None:
    """Create, renew, expire and describe delegation tokens, over connections that use SASL or TLS.

    A client with the HMAC can authenticate as the owner: by SCRAM, with the token's id as user, the HMAC as password
    and tokenauth=true.

    \b
    barnabas delegation-tokens --create --renewer-principal User:bob --command-config client.properties
    barnabas delegation-tokens --renew --hmac ... --command-config client.properties
    """
    if action is None:
        raise click.UsageError("One of --create, --renew, --expire and --describe must be given")
    with cluster.admin() as admin:
        rows = _ACTIONS[action](admin, given)
    if as_json:
        show_json(rows)
    elif action in ("create", "describe"):
        show_table(rows, COLUMNS, empty="No tokens")
    else:
        for row in rows:
            click.echo(f"The token expires at {row['expires']}")


def _create(admin: Any, given: dict[str, Any]) -> list[dict[str, Any]]:
    if len(given["owner_principal"]) > 1:
        raise click.UsageError("--create takes one --owner-principal")
    owner_type, owner = _principal(given["owner_principal"][0]) if given["owner_principal"] else (None, None)
    renewers = [_principal(each) for each in given["renewer_principal"]]
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner,
        renewers=[
            CreateDelegationTokenRequest.CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in renewers
        ],
        max_lifetime_ms=given["max_life_time_period"],
    )
    made = send_to_any(admin, request)
    check_code(made.error_code)
    return [
        {
            "token_id": made.token_id,
            "hmac": base64.b64encode(made.hmac).decode(),
            "owner": f"{made.principal_type}:{made.principal_name}",
            "requester": f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
            "renewers": [f"{kind}:{name}" for kind, name in renewers],
            "issued": _moment(made.issue_timestamp_ms),
            "expires": _moment(made.expiry_timestamp_ms),
            "ends": _moment(made.max_timestamp_ms),
        }
    ]


def _renew(admin: Any, given: dict[str, Any]) -> list[dict[str, Any]]:
    request = RenewDelegationTokenRequest(hmac=_hmac(given), renew_period_ms=given["renew_time_period"])
    return _changed(send_to_any(admin, request))


def _expire(admin: Any, given: dict[str, Any]) -> list[dict[str, Any]]:
    request = ExpireDelegationTokenRequest(hmac=_hmac(given), expiry_time_period_ms=given["expiry_time_period"])
    return _changed(send_to_any(admin, request))


def _changed(response: Any) -> list[dict[str, Any]]:
    check_code(response.error_code)
    return [{"expires": _moment(response.expiry_timestamp_ms)}]


def _describe(admin: Any, given: dict[str, Any]) -> list[dict[str, Any]]:
    owners = [
        DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
        for kind, name in map(_principal, given["owner_principal"])
    ]
    response = send_to_any(admin, DescribeDelegationTokenRequest(owners=owners or None))
    check_code(response.error_code)
    return [
        {
            "token_id": each.token_id,
            "hmac": base64.b64encode(each.hmac).decode(),
            "owner": f"{each.principal_type}:{each.principal_name}",
            "requester": f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            "renewers": [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers],
            "issued": _moment(each.issue_timestamp),
            "expires": _moment(each.expiry_timestamp),
            "ends": _moment(each.max_timestamp),
        }
        for each in sorted(response.tokens, key=lambda token: (token.principal_name, token.issue_timestamp))
    ]


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.strip().partition(":")
    if not colon or not kind or not name:
        raise click.UsageError(f"A principal is {text!r}, but must be like User:alice")
    return kind, name


def _hmac(given: dict[str, Any]) -> bytes:
    if not given["hmac"]:
        raise click.UsageError("--renew and --expire need --hmac")
    try:
        return base64.b64decode(given["hmac"], validate=True)
    except binascii.Error:
        raise click.UsageError("--hmac must be in base64, as --create shows it") from None


def _moment(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="seconds")


_ACTIONS: dict[str, Callable[[Any, dict[str, Any]], list[dict[str, Any]]]] = {
    "create": _create,
    "renew": _renew,
    "expire": _expire,
    "describe": _describe,
}
