"""``barnabas cluster``: starts a cluster on this machine, and steers its nodes.

Knows nothing of how the nodes are laid out and run.
"""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from barnabas import __version__
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
@click.pass_context
def cluster(context: click.Context, nodes: int, directory: Path | None, port: int, override: tuple[str, ...]) -> None:
    """Start a cluster on this machine, each node as a process of its own, until Ctrl-C.

    Node 1 is the controller, and a broker; the others are brokers. With --dir, properties and data are kept, and the
    same command starts the cluster again. From another terminal, nodes are stopped and started by their ids.

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
        _run(directory.absolute(), nodes, port, override)


def _run(directory: Path, nodes: int, port: int, override: tuple[str, ...]) -> None:
    from barnabas.cli.local_cluster.layout import lay_out
    from barnabas.cli.local_cluster.supervisor import NodeFailed, Supervisor
    from barnabas.cli.serve import SNIPPET
    from barnabas.cluster.formatting import FormatError
    from barnabas.config import ConfigError
    from barnabas.config.sources import parse_overrides
    from barnabas.server.run import loop_factory

    def ready() -> None:
        address = files[0].address
        which = "node" if nodes == 1 else "nodes"
        click.echo(
            f"Barnabas {__version__}, a cluster of {nodes} {which}, listens on {address}; files in {directory}\n\n"
            + SNIPPET.format(address=address)
        )

    try:
        files = lay_out(directory, nodes, parse_overrides(override), port)
        supervisor = Supervisor(directory, files, (), lambda text: click.echo(text, err=True))
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(supervisor.run(ready))
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
    """Stop a node cleanly: it hands its leaders over first."""
    _order(directory, "stop", str(node))


@cluster.command()
@node_argument
@directory_option
def kill(node: int, directory: Path) -> None:
    """End a node at once, as a power failure does."""
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
