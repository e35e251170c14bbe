"""``barnabas quorum``, with the commands and the output of kafka-metadata-quorum.

Knows nothing of the broker's internals; it uses an admin client. KIP-595, KIP-836, KIP-853.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from barnabas.cli.client import Cluster, bootstrap_option, check_code, cluster_options, config_option
from barnabas.cli.output import show_padded
from barnabas.cli.requests import send_to_any
from barnabas.cli.verbs import Verbs, pass_options_on
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.uuids import uuid_of, uuid_text
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from barnabas.wire.types import ZERO_UUID

UNKNOWN = -1
TIMEOUT_MS = 60_000
NO_CONTROLLER = "Is this a valid controller configuration file?"
HEADERS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")

Partition = DescribeQuorumResponse.TopicData.PartitionData
Replica = DescribeQuorumResponse.ReplicaState


@click.group(cls=Verbs)
@bootstrap_option
@config_option
@click.pass_context
def quorum(context: click.Context, /, **given: str | None) -> None:
    """Show and change the quorum of controllers, and show how far brokers have copied the metadata log.

    \b
    barnabas quorum describe --status
    barnabas quorum describe --replication --human-readable
    barnabas quorum --command-config controller.properties add-controller
    """
    pass_options_on(context, given)


@quorum.command()
@click.option("--status", is_flag=True, help="The leader, the voters and observers, and the largest lag of a voter.")
@click.option("--replication", is_flag=True, help="The log end offset and lag of each voter and observer.")
@click.option("--human-readable", is_flag=True, help="Ages instead of times, with --replication.")
@cluster_options
def describe(cluster: Cluster, status: bool, replication: bool, human_readable: bool) -> None:
    """Describe the quorum."""
    if status and replication:
        raise click.UsageError("Only one of --status or --replication should be specified with describe sub-command")
    if not status and not replication:
        raise click.UsageError("One of --status or --replication must be specified with describe sub-command")
    if human_readable and not replication:
        raise click.UsageError("The option --human-readable is only supported along with --replication")
    with cluster.admin() as admin:
        response, partition = described(admin)
        cluster_id = admin.describe_cluster()["cluster_id"] if status else ""
    if replication:
        show_replication(partition, human_readable=human_readable)
    else:
        show_status(response, partition, cluster_id)


@quorum.command("add-controller")
@click.option("--dry-run", is_flag=True, help="Show the voter that would be added, and add nothing.")
@cluster_options
def add_controller(cluster: Cluster, dry_run: bool) -> None:
    """Make a controller a voter. The file of --command-config is that of the controller."""
    if not cluster.properties:
        raise click.UsageError(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    voter = voter_of(cluster.properties)
    if not dry_run:
        listeners = [AddRaftVoterRequest.Listener(name=name, host=host, port=port) for name, host, port in voter[2]]
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=TIMEOUT_MS,
            voter_id=voter[0],
            voter_directory_id=voter[1],
            listeners=listeners,
        )
        with cluster.admin() as admin:
            response: AddRaftVoterResponse = send_to_any(admin, request)
        check_code(response.error_code, response.error_message)
    endpoints = ", ".join(f"{name}://{host_text(host)}:{port}" for name, host, port in voter[2])
    click.echo(
        f"{'DRY RUN of adding' if dry_run else 'Added'} controller {voter[0]} with directory id {uuid_text(voter[1])} "
        f"and endpoints: {endpoints}"
    )


@quorum.command("remove-controller")
@click.option("--controller-id", "-i", type=int, required=True, help="The node id of the controller.")
@click.option("--controller-directory-id", "-d", required=True, help="The id of its metadata log directory.")
@click.option("--dry-run", is_flag=True, help="Show the voter that would be removed, and remove nothing.")
@cluster_options
def remove_controller(cluster: Cluster, controller_id: int, controller_directory_id: str, dry_run: bool) -> None:
    """Remove a controller from the voters; it becomes an observer."""
    if controller_id < 0:
        raise click.UsageError(f"Invalid negative --controller-id: {controller_id}")
    try:
        directory_id = uuid_of(controller_directory_id)
    except ValueError as error:
        text = f"Failed to parse --controller-directory-id: {error}"
        raise click.UsageError(text) from None
    if not dry_run:
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=controller_id, voter_directory_id=directory_id)
        with cluster.admin() as admin:
            response: RemoveRaftVoterResponse = send_to_any(admin, request)
        check_code(response.error_code, response.error_message)
    what = "DRY RUN of removing" if dry_run else "Removed"
    click.echo(f"{what}  KRaft controller {controller_id} with directory id {uuid_text(directory_id)}")


def voter_of(properties: Mapping[str, str]) -> tuple[int, bytes, list[tuple[str, str, int]]]:
    """Returns the node id, the directory id and the endpoints of a controller with these properties.

    :raises click.ClickException: it is not a controller, or its directory is not formatted
    """
    from barnabas.config import BrokerConfig, ConfigError
    from barnabas.log import meta_properties
    from barnabas.log.files import DiskFiles

    if "node.id" not in properties:
        raise click.ClickException(f"node.id not found in configuration file. {NO_CONTROLLER}")
    try:
        config = BrokerConfig.from_properties(properties)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    if not config.is_controller:
        text = "process.roles did not contain 'controller' in configuration file."
        raise click.ClickException(f"{text} {NO_CONTROLLER}")
    directory = config.log_dirs[0]
    found = meta_properties.read(DiskFiles(), directory)
    if found is None:
        raise click.ClickException(f"Unable to read meta.properties from {directory}")
    if found.directory_id == ZERO_UUID:
        raise click.ClickException(f"No directory id found in {directory}")
    endpoints = [(each.name, each.host, each.port) for each in config.advertised_controller_listeners]
    return config.node_id, found.directory_id, endpoints


def described(admin: Any) -> tuple[DescribeQuorumResponse, Partition]:
    Topic = DescribeQuorumRequest.TopicData
    topic = Topic(topic_name=CLUSTER_METADATA, partitions=[Topic.PartitionData(partition_index=0)])
    response: DescribeQuorumResponse = send_to_any(admin, DescribeQuorumRequest(topics=[topic]))
    check_code(response.error_code, response.error_message)
    partition = response.topics[0].partitions[0]
    check_code(partition.error_code, partition.error_message)
    return response, partition


def show_status(response: DescribeQuorumResponse, partition: Partition, cluster_id: str) -> None:
    """Prints a summary. The lag is the largest of all voters."""
    leader = leader_of(partition)
    voters = partition.current_voters
    lag = leader.log_end_offset - min(each.log_end_offset for each in voters)
    caught_up = min((each.last_caught_up_timestamp for each in voters if each is not leader), default=None)
    lag_ms = 0 if caught_up is None else max(0, leader.last_caught_up_timestamp - caught_up)
    if caught_up == UNKNOWN:
        lag_ms = UNKNOWN
    for name, value in (
        ("ClusterId", cluster_id),
        ("LeaderId", partition.leader_id),
        ("LeaderEpoch", partition.leader_epoch),
        ("HighWatermark", partition.high_watermark),
        ("MaxFollowerLag", lag),
        ("MaxFollowerLagTimeMs", lag_ms),
        ("CurrentVoters", nodes_text(response, voters)),
        ("CurrentObservers", nodes_text(response, partition.observers)),
    ):
        click.echo(f"{name + ':':<24}{value}")


def nodes_text(response: DescribeQuorumResponse, replicas: Sequence[Replica]) -> str:
    """Returns nodes as JSON: id, directory and endpoints, as far as they are known."""
    endpoints = {
        node.node_id: [f"{each.name}://{host_text(each.host)}:{each.port}" for each in node.listeners]
        for node in response.nodes
    }
    nodes = []
    for replica in replicas:
        node: dict[str, Any] = {"id": replica.replica_id}
        if replica.replica_directory_id != ZERO_UUID:
            node["directoryId"] = uuid_text(replica.replica_directory_id)
        if endpoints.get(replica.replica_id):
            node["endpoints"] = endpoints[replica.replica_id]
        nodes.append(json.dumps(node))
    return f"[{', '.join(nodes)}]"


def host_text(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def leader_of(partition: Partition) -> Replica:
    """:raises click.ClickException: the quorum has no leader among its voters"""
    for each in partition.current_voters:
        if each.replica_id == partition.leader_id:
            return each
    raise click.ClickException(f"The leader {partition.leader_id} is no voter")


def show_replication(partition: Partition, *, human_readable: bool) -> None:
    """Prints a row for each voter and observer, the leader first."""
    leader = leader_of(partition)
    now = int(time.time() * 1000)
    time_text: Callable[[int], str] = (lambda ms: age(ms, now)) if human_readable else str
    rows = [HEADERS]
    for status, replicas in (
        ("Leader", [leader]),
        ("Follower", [each for each in partition.current_voters if each is not leader]),
        ("Observer", partition.observers),
    ):
        for each in replicas:
            rows.append(
                (
                    str(each.replica_id),
                    uuid_text(each.replica_directory_id),
                    str(each.log_end_offset),
                    str(leader.log_end_offset - each.log_end_offset),
                    time_text(each.last_fetch_timestamp),
                    time_text(each.last_caught_up_timestamp),
                    status,
                )
            )
    show_padded(rows)


def age(timestamp_ms: int, now_ms: int) -> str:
    return str(UNKNOWN) if timestamp_ms == UNKNOWN else f"{max(0, now_ms - timestamp_ms)} ms ago"
