"""``barnabas proxy``: runs a proxy in front of a cluster, through which clients reach all of its brokers.

Knows nothing of connections.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, TextIO

import click

from barnabas.cli.client import config_option, read_properties
from barnabas.clock import SystemClock
from barnabas.config.validators import ConfigError
from barnabas.diagnosis import DEFAULT_PORT, Address
from barnabas.faults.naming import ImpossibleRule
from barnabas.faults.script import rules_of
from barnabas.proxy.connecting import connect_by
from barnabas.proxy.gateway import Gateway
from barnabas.proxy.observing import Filter, Observing, Sink
from barnabas.proxy.printing import Printer
from barnabas.proxy.proxy import Proxy
from barnabas.proxy.recording import Recorder
from barnabas.proxy.rules import ProxyRules, watch
from barnabas.proxy.running import run
from barnabas.proxy.withheld import Records, Withholding, change_of


@click.command()
@click.option("--listen", default=f"127.0.0.1:{DEFAULT_PORT}", show_default=True, metavar="[HOST]:PORT",
              help="Where clients connect; the brokers have the ports after it, or free ones if it is 0.")  # fmt: skip
@click.option("--to", required=True, metavar="HOST:PORT[,...]", help="Brokers of the cluster.")
@click.option("--advertise", metavar="HOST", help="The host by which clients reach the proxy.")
@config_option
@click.option("--print", "is_printing", is_flag=True, help="Print a line for each request and its answer.")
@click.option("--json", "as_json", is_flag=True, help="Print requests and answers as JSON, an object per line.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Print or record only those with this api, client_id or topic; may be repeated.",
)
@click.option("--record", type=click.Path(dir_okay=False), help="Record requests and answers in this file.")
@click.option(
    "--records",
    type=click.Choice([each.value for each in Records]),
    default=Records.WHOLE.value,
    show_default=True,
    help="How keys, values and headers are recorded.",
)
@click.option("--faults", type=click.Path(dir_okay=False), help="A file with rules of faults, one per line.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the rules' random numbers.")
@click.option("--log-level", default="WARNING", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
def proxy(
    listen: str,
    to: str,
    advertise: str | None,
    command_config: str | None,
    faults: str | None,
    seed: int,
    log_level: str,
    record: str | None,
    **observed: Any,
) -> int:
    """Run a proxy in front of a cluster, through which clients reach all of its brokers.

    In responses, the addresses of brokers are replaced by the proxy's ports. --command-config sets TLS and SASL
    towards the cluster; clients connect without TLS, and may authenticate to the cluster by SASL themselves.

    \b
    barnabas proxy --listen :9092 --to kafka.example.com:9092
    barnabas proxy --to localhost:9093 --faults rules.txt --log-level INFO
    barnabas proxy --to localhost:9093 --print --filter api=Produce --filter topic=orders
    barnabas proxy --to localhost:9093 --record traffic.jsonl --records hash
    """
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    properties = read_properties(command_config) if command_config else {}
    host, port = listening(listen)
    servers = [Address.parse(server) for server in to.split(",") if server.strip()]

    def make(loop: asyncio.AbstractEventLoop) -> Proxy:
        connect = connect_by(properties, loop, Random())
        made = Proxy(servers, connect, host=host, port=port, advertised_host=advertise)
        made.on_gateway = _announce_node
        if script:
            watch(made, script, loop, Random(seed))
        observe(made, file, **observed)
        return made

    script = read_script(faults) if faults else ""
    try:
        with opened(record) as file:
            run(make, lambda made: click.echo(f"{listen.rpartition(':')[0] or '*'}:{made.port} leads to {to}"))
    except (OSError, ConfigError, ImpossibleRule) as error:
        raise click.ClickException(str(error)) from None
    return 0


@contextlib.contextmanager
def opened(path: str | None) -> Iterator[TextIO | None]:
    """Opens a file that is written line by line; None without a path."""
    if path is None:
        yield None
    else:
        with Path(path).open("w", encoding="utf-8", buffering=1) as file:
            yield file


def observe(
    made: Proxy, file: TextIO | None, *, is_printing: bool, as_json: bool, filters: tuple[str, ...], records: str
) -> None:
    """Prints and records requests and responses, as the options say."""
    clock, topic_name = SystemClock(), made.topics.get
    sinks: list[Sink] = []
    if is_printing or as_json:
        sinks.append(Printer(click.echo, topic_name, as_json=as_json))
    if file is not None:
        withholding = Withholding(change_of(Records(records), os.urandom(16)), made.requests)
        about = {"to": list(map(str, made.gateways[0].nodes)), "records": records, "began_ms": clock.time_ms()}
        sinks.append(Recorder(lambda line: file.write(line + "\n"), about, clock.monotonic(), withholding))
    if sinks:
        made.observer = Observing(sinks, made.requests, clock, wanted_of(filters), topic_name)


def wanted_of(filters: tuple[str, ...]) -> Filter:
    """Returns the filter of the options. :raises click.UsageError: one is not valid"""
    try:
        return Filter.parse(filters)
    except ValueError as error:
        raise click.UsageError(f"--filter: {error}") from None


def _announce_node(gateway: Gateway) -> None:
    click.echo(f"{gateway.nodes[0]} is reached at port {gateway.port}")


def read_script(path: str) -> str:
    """Returns the rules of a file as text. :raises click.ClickException: it cannot be read, or a line is not a rule"""
    try:
        script = Path(path).read_text("utf-8")
        rules_of(script, ProxyRules(SystemClock(), Random()).possible)
    except (OSError, UnicodeDecodeError, ImpossibleRule) as error:
        raise click.ClickException(f"{path}: {error}") from None
    return script


def listening(text: str) -> tuple[str, int]:
    """Returns the host, which is empty for all interfaces, and the port of ``[HOST]:PORT``.

    :raises click.UsageError: it is not of that form
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        raise click.UsageError(f"--listen is {text!r}, but must be HOST:PORT or :PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
