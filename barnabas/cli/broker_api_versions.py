"""``barnabas broker-api-versions``, with the output of kafka-broker-api-versions.

Knows nothing of the broker's internals; it uses an admin client. KIP-35.
"""

from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options
from barnabas.cli.output import json_option, show_json
from barnabas.cli.requests import send_to_broker
from barnabas.wire.message import Request
from barnabas.wire.messages import declared
from barnabas.wire.messages.api_versions import ApiVersionsRequest


@click.command("broker-api-versions")
@json_option
@cluster_options
def broker_api_versions(cluster: Cluster, as_json: bool) -> None:
    """Show which versions of each API the brokers of a cluster have, and the one that this client would use."""
    with cluster.admin() as admin:
        brokers = [
            {"id": each["broker_id"], "host": each["host"], "port": each["port"], "rack": each["rack"]}
            | {"apis": apis_of(admin, each["broker_id"])}
            for each in sorted(admin.describe_cluster()["brokers"], key=lambda each: int(each["broker_id"]))
        ]
    if as_json:
        show_json(brokers)
        return
    for broker in brokers:
        rack = "null" if broker["rack"] is None else broker["rack"]
        click.echo(f"{broker['host']}:{broker['port']} (id: {broker['id']} rack: {rack} isFenced: false) -> (")
        click.echo(",\n".join(f"\t{_line(each)}" for each in broker["apis"]))
        click.echo(")")


def apis_of(admin: Any, broker: int) -> list[dict[str, Any]]:
    """Returns a row for each API that either side has; without versions if the broker does not have it."""
    request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
    theirs = {each.api_key: each for each in send_to_broker(admin, broker, request).api_keys}
    ours = client_apis()
    rows = []
    for key in sorted(theirs.keys() | ours.keys()):
        name, newest = ours.get(key, (f"UNKNOWN({key})", None))
        there = theirs.get(key)
        first, last = (None, None) if there is None else (there.min_version, there.max_version)
        usable = None if last is None or newest is None else min(last, newest)
        rows.append({"api_key": key, "api": name, "min_version": first, "max_version": last, "usable": usable})
    return rows


def client_apis() -> dict[int, tuple[str, int | None]]:
    """Returns the name of each API that brokers answer to clients, and the newest version of it here."""
    from barnabas.api_handlers.registry import BROKER_APIS, TELEMETRY_APIS

    names: dict[int, tuple[str, int | None]] = {}
    for name, kind in declared().items():
        if issubclass(kind, Request) and kind.api_key in (*BROKER_APIS, *TELEMETRY_APIS):
            names[kind.api_key] = (name.removesuffix("Request"), kind.versions.last)
    return names


def _line(row: dict[str, Any]) -> str:
    what = f"{row['api']}({row['api_key']}): "
    if row["max_version"] is None:
        return f"{what}UNSUPPORTED"
    first, last = row["min_version"], row["max_version"]
    versions = str(first) if first == last else f"{first} to {last}"
    return f"{what}{versions} [usable: {row['usable'] if row['usable'] is not None else 'UNSUPPORTED'}]"
