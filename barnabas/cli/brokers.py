"""``barnabas brokers``: the brokers of a cluster, with their state, versions, replicas and log directories.

Knows nothing of the broker's internals; it uses an admin client.
"""

from collections import Counter
from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options, error_name
from barnabas.cli.output import json_option, show_json, show_table
from barnabas.cli.requests import send_to_any
from barnabas.cluster.features import METADATA_VERSION, METADATA_VERSIONS
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest

COLUMNS = ("id", "address", "rack", "state", "metadata_versions", "leaders", "replicas", "log_dirs")


@click.command()
@json_option
@cluster_options
def brokers(cluster: Cluster, as_json: bool) -> None:
    """Show the brokers of a cluster: address, rack, state, versions, replicas and log directories.

    \b
    barnabas brokers
    barnabas brokers --json
    """
    with cluster.admin() as admin:
        rows = described(admin)
    if as_json:
        show_json(rows)
        return
    for row in rows:
        first, last = row["features"].get(METADATA_VERSION, (None, None))
        row["metadata_versions"] = (
            f"{METADATA_VERSIONS.get(first, first)} to {METADATA_VERSIONS.get(last, last)}" if last else None
        )
        row["log_dirs"] = [
            each["log_dir"] + (f" ({each['error']})" if each["error"] else "") for each in row["log_dirs"]
        ]
    show_table(rows, COLUMNS, empty="The cluster has no brokers")


def described(admin: Any) -> list[dict[str, Any]]:
    """Returns a row for each registered broker. Features, replicas and directories of a fenced broker are unknown."""
    cluster = send_to_any(
        admin, DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    )
    leaders, replicas = counts(admin)
    rows = []
    for broker in sorted(cluster.brokers, key=lambda each: each.broker_id):
        broker_id = broker.broker_id
        rows.append(
            {
                "id": broker_id,
                "address": f"{broker.host}:{broker.port}",
                "rack": broker.rack,
                "state": "fenced" if broker.is_fenced else "unfenced",
                "features": {} if broker.is_fenced else features_of(admin, broker_id),
                "leaders": leaders[broker_id],
                "replicas": replicas[broker_id],
                "log_dirs": [] if broker.is_fenced else log_dirs_of(admin, broker_id),
            }
        )
    return rows


def counts(admin: Any) -> tuple[Counter[int], Counter[int]]:
    """Returns the numbers of leaders and of replicas on each broker."""
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for topic in admin.describe_topics():
        for partition in topic["partitions"]:
            leaders[partition["leader_id"]] += 1
            replicas.update(partition["replica_nodes"])
    return leaders, replicas


def features_of(admin: Any, broker_id: int) -> dict[str, tuple[int, int]]:
    """Returns the levels of features that a broker supports."""
    from kafka.protocol.metadata import ApiVersionsRequest

    async def send() -> Any:
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1", min_version=3)
        return await admin._manager.send(request, node_id=broker_id)

    found = admin._manager.run(send).supported_features or ()
    return {each.name: (each.min_version, each.max_version) for each in sorted(found, key=lambda each: each.name)}


def log_dirs_of(admin: Any, broker_id: int) -> list[dict[str, Any]]:
    (broker,) = admin.describe_log_dirs(brokers=[broker_id])
    return [
        {"log_dir": each["log_dir"], "error": error_name(each["error_code"])}
        for each in sorted(broker["log_dirs"], key=lambda each: str(each["log_dir"]))
    ]
