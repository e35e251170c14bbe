"""``barnabas serve``: starts a broker and prints its address.

Knows nothing of what the broker does. This module and its imports must not import click, rich or a client, which would
delay the broker's first response.
"""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas import __version__
from barnabas.cluster.features import METADATA_VERSION, first_levels, metadata_version_named
from barnabas.config import BrokerConfig, ConfigError, sources
from barnabas.server.http_services import has_packages
from barnabas.server.run import run
from barnabas.server.server import Server

SNIPPET = (
    "from kafka import KafkaConsumer, KafkaProducer\n"
    'producer = KafkaProducer(bootstrap_servers="{address}")\n'
    'producer.send("greetings", key=b"who", value=b"hello from Barnabas").get(timeout=10)\n'
    'consumer = KafkaConsumer("greetings", bootstrap_servers="{address}", auto_offset_reset="earliest", '
    "consumer_timeout_ms=5000)\n"
    "for record in consumer:\n"
    "    print(record.topic, record.partition, record.offset, record.key, record.value)\n"
)
"""A client program to paste and run."""


class Option(NamedTuple):
    """An option of the command; it becomes a click option only to print help or an error."""

    flags: tuple[str, ...]
    name: str
    help: str
    is_flag: bool = False
    multiple: bool = False


Ready = Callable[[Server], object]


class Options(NamedTuple):
    """The parsed options of the command."""

    properties: str | None = None
    override: tuple[str, ...] = ()
    dev: bool = False
    schema_registry: bool = False
    console: bool = False
    metrics: bool = False
    log_dirs: str | None = None
    port: str | None = None
    compatible_with: str | None = None
    feature: tuple[str, ...] = ()
    release_version: str | None = None
    ready_file: str | None = None
    parent_pid: str | None = None
    log_level: str = "INFO"


OPTIONS = (
    Option(("--config",), "properties", "The server.properties file; --config may be omitted before it."),
    Option(("--override",), "override", "A property that overrides environment and file: name=value.", multiple=True),
    Option(("--dev",), "dev", "Development: one replica, no rebalance delays, data deleted at the end.", is_flag=True),
    Option(("--schema-registry",), "schema_registry", "Serve a schema registry at 127.0.0.1:8081.", is_flag=True),
    Option(("--console",), "console", "Serve pages for the browser at 127.0.0.1:8080.", is_flag=True),
    Option(("--metrics",), "metrics", "Serve /metrics for Prometheus at 127.0.0.1:9308.", is_flag=True),
    Option(("--log-dirs", "--log-dir"), "log_dirs", "The data directories, separated by commas: short for log.dirs."),
    Option(("--port",), "port", "Listen on this port of 127.0.0.1 only; 0 takes a free port."),
    Option(("--compatible-with",), "compatible_with", "Offer clients the APIs of that Apache Kafka: 0.8 to 4.4."),
    Option(("--feature",), "feature", "A feature's level in a new cluster: transaction.version=1.", multiple=True),
    Option(("--release-version",), "release_version", "Start a new cluster with the levels of that Apache Kafka: 3.9."),
    Option(("--ready-file",), "ready_file", "Write addresses and process id there, as JSON, once the broker answers."),
    Option(
        ("--parent-pid",), "parent_pid", "Stop when that process ends, such as a test run that has started the broker."
    ),
    Option(("--log-level",), "log_level", "DEBUG, INFO (the default), WARNING or ERROR."),
)


def read(arguments: Sequence[str]) -> Options | None:
    """Parses the options; returns None if click is needed to print help or an error."""
    by_flag = {flag: option for option in OPTIONS for flag in option.flags}
    given: dict[str, str | bool | tuple[str, ...]] = {}
    waiting = list(reversed(arguments))
    while waiting:
        flag, equals, value = waiting.pop().partition("=")
        option = by_flag.get(flag)
        if option is None:
            if flag.startswith("-") or "properties" in given:
                return None
            given["properties"] = flag + equals + value
        elif option.is_flag:
            if equals:
                return None
            given[option.name] = True
        else:
            if not equals:
                if not waiting:
                    return None
                value = waiting.pop()
            before = given.get(option.name, ())
            given[option.name] = (*before, value) if option.multiple and isinstance(before, tuple) else value
    return Options(**given)  # type: ignore[arg-type]


def serve(options: Options) -> int:
    """Runs a broker until SIGTERM or SIGINT, and returns the exit code of the process."""
    level = logging.getLevelNamesMapping().get(options.log_level.upper())
    if level is None:
        return _fail(f"--log-level is {options.log_level!r}, but must be one of DEBUG, INFO, WARNING, ERROR")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    return start(options, os.environ, announce)


def start(options: Options, environment: "os._Environ[str] | dict[str, str]", ready: Ready) -> int:
    """Runs a broker until SIGTERM or SIGINT, and returns the exit code of the process.

    :param environment: the environment, whose variables with the prefix ``KAFKA_`` are configs
    :param ready: called with the server once it answers
    """
    try:
        properties = merged_properties(options, environment)
        features = feature_levels(options)
        if options.dev and has_packages():
            properties.setdefault("barnabas.admin.listener", "127.0.0.1:0")
        if options.dev and not {"log.dirs", "log.dir"} & set(properties):
            from tempfile import TemporaryDirectory

            with TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True) as directory:
                return _run({**properties, "log.dirs": directory}, features, options, ready)
        return _run(properties, features, options, ready)
    except (ConfigError, OSError) as error:
        return _fail(str(error))


def merged_properties(options: Options, environment: "os._Environ[str] | dict[str, str]") -> dict[str, str]:
    """Returns the properties of the file, the environment and the command line, merged.

    :raises ConfigError, OSError: one of these cannot be read
    """
    file: dict[str, str] = {}
    if options.properties is not None:
        from pathlib import Path

        file = sources.parse_properties(Path(options.properties).read_text("utf-8"))
    short = {}
    if options.log_dirs is not None:
        short["log.dirs"] = options.log_dirs
    if options.port is not None:
        short["listeners"] = f"PLAINTEXT://127.0.0.1:{options.port}"
    if options.compatible_with is not None:
        short["barnabas.compatible.with"] = options.compatible_with
    if options.schema_registry:
        short["barnabas.schema.registry.listener"] = "127.0.0.1:8081"
    if options.console:
        short["barnabas.console.listener"] = "127.0.0.1:8080"
    if options.metrics:
        short["barnabas.metrics.listener"] = "127.0.0.1:9308"
    overrides = {**short, **sources.parse_overrides(options.override)}
    return sources.merged(file=file, environment=sources.from_environment(environment), overrides=overrides)


def feature_levels(options: Options) -> dict[str, int]:
    """Returns the feature levels for a new cluster that the options give.

    :raises ConfigError: a feature, level or release is unknown, or a level depends on another that is missing
    """
    found: dict[str, int] = {}
    for each in options.feature:
        name, _, text = each.partition("=")
        if not text.removeprefix("-").isdecimal():
            raise ConfigError("--feature", each, "a feature and its level, like transaction.version=1")
        found[name.strip()] = int(text)
    if options.release_version is not None:
        if METADATA_VERSION in found:
            raise ConfigError(
                "--release-version", options.release_version, f"given without --feature {METADATA_VERSION}"
            )
        found[METADATA_VERSION] = metadata_version_named(options.release_version)
    first_levels(found)
    return found


def _run(properties: dict[str, str], features: dict[str, int], options: Options, ready: Ready) -> int:
    config = BrokerConfig.from_properties(properties, dev=options.dev)
    new_server: Callable[..., Server] = Server
    if config["barnabas.admin.listener"]:
        from barnabas.admin.turnable import new_turnable_server as new_server
    parent, ready_file, is_ready = options.parent_pid, options.ready_file, ready
    if parent is not None and not parent.isdecimal():
        raise ConfigError("--parent-pid", parent, "the id of a process")
    if ready_file is not None:
        from barnabas.cli import ready_files

        ready_files.remove(ready_file)

        def is_ready(server: Server) -> None:
            ready_files.write(ready_file, server, client_address(server) if config.is_broker else None)
            ready(server)

    pid = None if parent is None else int(parent)
    return run(config, is_ready, features, new_server=new_server, parent_pid=pid)


def announce(server: Server) -> None:
    """Prints the node's listeners and data directories, and on a broker a client program."""
    config = server.config
    bound = {each.endpoint.name: each.endpoint for each in (*server.listeners, *server.controller_listeners)}
    where = ", ".join(map(str, bound.values()))
    lines = [f"Barnabas {__version__}, node {config.node_id}, listens on {where}; data in {', '.join(config.log_dirs)}"]
    # Not the listener of the admin API: a user who has set it knows it, and --dev sets it by default.
    lines[0] += "".join(f"; {each.name} at {each.url}" for each in server.http_services if each.name != "admin")
    if config.is_broker:
        lines += ["", SNIPPET.format(address=client_address(server))]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def client_address(server: Server) -> str:
    """Returns the advertised host and port of the first listener for clients."""
    bound = {each.endpoint.name: each.endpoint for each in server.listeners}
    client = next(iter(server.config.advertised_listeners))
    client = client._replace(port=client.port or bound[client.name].port, host=client.host or "127.0.0.1")
    return str(client).partition("://")[2]


def _fail(message: str) -> int:
    sys.stderr.write(f"Error: {message}\n")
    return 1
