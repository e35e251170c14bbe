"""``barnabas cluster``: starts a cluster on this machine, and starts and stops its nodes. Its further commands are
those of kafka-cluster, for any cluster.

Knows nothing of the nodes' files and processes.
"""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from barnabas import __version__
from barnabas.cli.client import Cluster, check_code, cluster_options
from barnabas.cli.verbs import Verbs, pass_options_on

directory_option = click.option(
    "--dir", "directory", required=True, metavar="DIR", help="The directory of the cluster, which runs.",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)  # fmt: skip
node_argument = click.argument("node", type=click.IntRange(1), metavar="ID")


@click.group(cls=Verbs, invoke_without_command=True)
@click.option("--nodes", type=click.IntRange(1), default=3, show_default=True, help="How many nodes the cluster has.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where properties, data and logs of the nodes are. Without it, they are deleted at the end.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Of node 1; the others follow. Default: free ports."
)
@click.option("--override", multiple=True, metavar="NAME=VALUE", help="A property of all nodes; may be repeated.")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False),
    help="Write addresses and process ids there, as JSON, once all nodes answer.",
)
@click.option("--parent-pid", type=int, metavar="PID", help="Stop when that process ends, such as a test run.")
@click.pass_context
def cluster(
    context: click.Context,
    nodes: int,
    directory: Path | None,
    port: int,
    override: tuple[str, ...],
    ready_file: str | None,
    parent_pid: int | None,
) -> None:
    """Start a cluster on this machine, each node as a process of its own, until Ctrl-C.

    All nodes are brokers, and the first three are controllers, too; of two nodes, the first one is. With --dir,
    properties and data are kept, and the same command starts the cluster again. From another terminal, nodes are
    stopped and started by their ids.

    \b
    barnabas cluster --nodes 3 --dir my-cluster
    barnabas cluster kill 2 --dir my-cluster
    barnabas cluster start 2 --dir my-cluster
    """
    if context.invoked_subcommand is not None:
        pass_options_on(context, {"directory": directory})
        return
    with ExitStack() as cleanup:
        if directory is None:
            temporary = TemporaryDirectory(prefix="barnabas-cluster-", ignore_cleanup_errors=True)
            directory = Path(cleanup.enter_context(temporary))
        _run(directory.absolute(), nodes, port, override, ready_file, parent_pid)


def _run(
    directory: Path, nodes: int, port: int, override: tuple[str, ...], ready_file: str | None, parent_pid: int | None
) -> None:
    from barnabas.cli import ready_files
    from barnabas.cli.local_cluster.layout import lay_out
    from barnabas.cli.local_cluster.supervisor import NodeFailed, Supervisor
    from barnabas.cli.serve import SNIPPET
    from barnabas.cluster.formatting import FormatError
    from barnabas.config import ConfigError
    from barnabas.config.sources import parse_overrides
    from barnabas.server.run import loop_factory

    def ready() -> None:
        if ready_file is not None:
            ready_files.write_cluster(ready_file, [node.ready for node in files])
        address = files[0].address
        which = "node" if nodes == 1 else "nodes"
        click.echo(
            f"Barnabas {__version__}, a cluster of {nodes} {which}, listens on {address}; files in {directory}\n\n"
            + SNIPPET.format(address=address)
        )

    try:
        if ready_file is not None:
            ready_files.remove(ready_file)
        files = lay_out(directory, nodes, parse_overrides(override), port)
        supervisor = Supervisor(directory, files, (), lambda text: click.echo(text, err=True))
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(supervisor.run(ready, parent_pid))
    except (ConfigError, FormatError, NodeFailed, OSError) as error:
        raise click.ClickException(str(error)) from None


def _order(directory: Path, *order: str) -> None:
    from barnabas.cli.local_cluster.supervisor import tell

    try:
        answer = tell(directory, *order)
    except OSError:
        raise click.ClickException(f"No cluster runs in {directory}") from None
    if answer.startswith("Error: "):
        raise click.ClickException(answer.removeprefix("Error: "))
    click.echo(answer, nl=False)


@cluster.command()
@node_argument
@directory_option
def start(node: int, directory: Path) -> None:
    """Start a node that has been stopped, and wait until it answers."""
    _order(directory, "start", str(node))


@cluster.command()
@node_argument
@directory_option
def stop(node: int, directory: Path) -> None:
    """Stop a node cleanly, after other brokers have become leaders of its partitions."""
    _order(directory, "stop", str(node))


@cluster.command()
@node_argument
@directory_option
def kill(node: int, directory: Path) -> None:
    """Kill a node (SIGKILL), as a power failure would."""
    _order(directory, "kill", str(node))


@cluster.command()
@node_argument
@directory_option
def restart(node: int, directory: Path) -> None:
    """Stop a node cleanly, start it again, and wait until it answers."""
    _order(directory, "restart", str(node))


@cluster.command()
@directory_option
def status(directory: Path) -> None:
    """Show which nodes run, and where clients connect to them."""
    _order(directory, "status")


@cluster.command("cluster-id")
@cluster_options
def cluster_id(cluster: Cluster) -> None:
    """Show the id of a cluster."""
    with cluster.admin() as admin:
        click.echo(f"Cluster ID: {admin.describe_cluster()['cluster_id']}")


@cluster.command()
@click.option("--id", "-i", "broker_id", type=int, required=True, help="The id of the broker.")
@cluster_options
def unregister(cluster: Cluster, broker_id: int) -> None:
    """Remove a broker that will not come back from a cluster."""
    from barnabas.cli.requests import send_to_any
    from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest

    with cluster.admin() as admin:
        response = send_to_any(admin, UnregisterBrokerRequest(broker_id=broker_id))
    check_code(response.error_code, response.error_message)
    click.echo(f"Broker {broker_id} is no longer registered.")


@cluster.command("list-endpoints")
@click.option("--include-fenced-brokers", is_flag=True, help="List fenced brokers, too.")
@cluster_options
def list_endpoints(cluster: Cluster, include_fenced_brokers: bool) -> None:
    """List the brokers of a cluster, with their addresses."""
    from barnabas.cli.requests import send_to_any
    from barnabas.wire.messages.describe_cluster import DescribeClusterRequest

    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=include_fenced_brokers
    )
    with cluster.admin() as admin:
        response = send_to_any(admin, request)
    check_code(response.error_code, response.error_message)
    rows = [
        (
            each.broker_id,
            each.host,
            each.port,
            each.rack,
            "fenced" if each.is_fenced else "unfenced",
            "broker",
        )
        for each in sorted(response.brokers, key=lambda each: each.broker_id)
    ]
    # The columns of Kafka's ClusterTool are as wide as the longest host and rack; without racks, the latter has 10.
    host = max((len(row[1]) for row in rows), default=1)
    rack = max((len(row[3]) for row in rows if row[3]), default=10)
    for row in [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"), *rows]:
        widths = (10, host, 10, rack, 10, 15)
        cells = ["null" if cell is None else cell for cell in row]
        click.echo(" ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)))
