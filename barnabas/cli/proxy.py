"""``barnabas proxy``: a proxy in front of a cluster, through which all of its brokers are reached.

Knows nothing of connections.
"""

import asyncio
import logging
from random import Random

import click

from barnabas.cli.client import config_option, read_properties
from barnabas.config.validators import ConfigError
from barnabas.diagnosis import DEFAULT_PORT, Address
from barnabas.proxy.connecting import connect_by
from barnabas.proxy.gateway import Gateway
from barnabas.proxy.proxy import Proxy
from barnabas.proxy.running import run


@click.command()
@click.option("--listen", default=f"127.0.0.1:{DEFAULT_PORT}", show_default=True, metavar="[HOST]:PORT",
              help="Where clients connect; the brokers have the ports after it, or free ones if it is 0.")  # fmt: skip
@click.option("--to", required=True, metavar="HOST:PORT[,...]", help="Brokers of the cluster.")
@click.option("--advertise", metavar="HOST", help="The host by which clients reach the proxy.")
@config_option
@click.option("--log-level", default="WARNING", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
def proxy(listen: str, to: str, advertise: str | None, command_config: str | None, log_level: str) -> int:
    """Stand in front of a cluster, so that clients reach all of its brokers through here.

    Answers that name brokers name the proxy's ports instead. TLS and SASL towards the cluster are those of
    --command-config; clients connect in the clear, and may log in at the cluster themselves.

    \b
    barnabas proxy --listen :9092 --to kafka.example.com:9092
    """
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    properties = read_properties(command_config) if command_config else {}
    host, port = listening(listen)
    servers = [Address.parse(server) for server in to.split(",") if server.strip()]

    def make(loop: asyncio.AbstractEventLoop) -> Proxy:
        connect = connect_by(properties, loop, Random())
        made = Proxy(servers, connect, host=host, port=port, advertised_host=advertise)
        made.on_gateway = _announce_node
        return made

    try:
        run(make, lambda made: click.echo(f"{listen.rpartition(':')[0] or '*'}:{made.port} leads to {to}"))
    except (OSError, ConfigError) as error:
        raise click.ClickException(str(error)) from None
    return 0


def _announce_node(gateway: Gateway) -> None:
    click.echo(f"{gateway.nodes[0]} is seen at port {gateway.port}")


def listening(text: str) -> tuple[str, int]:
    """Returns the host, which is empty for all interfaces, and the port of ``[HOST]:PORT``.

    :raises click.UsageError: it is not of that form
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        raise click.UsageError(f"--listen is {text!r}, but must be HOST:PORT or :PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
