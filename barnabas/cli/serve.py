"""``barnabas serve``: start a broker, and say where it listens.

Knows nothing of what the broker does. Nothing here, and nothing that it imports, may import click, rich or a client:
the broker is to answer 150 ms after its process started.
"""

import logging
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from barnabas import __version__
from barnabas.cluster.features import METADATA_VERSION, first_levels, metadata_version_named
from barnabas.config import BrokerConfig, ConfigError, Endpoint, sources
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
"""A client that works when it is pasted."""


class Option(NamedTuple):
    """An option of the command; click is told of it only when it is needed."""

    flags: tuple[str, ...]
    name: str
    help: str
    is_flag: bool = False
    multiple: bool = False


class Options(NamedTuple):
    """What the command was given."""

    properties: str | None = None
    override: tuple[str, ...] = ()
    dev: bool = False
    log_dirs: str | None = None
    port: str | None = None
    compatible_with: str | None = None
    feature: tuple[str, ...] = ()
    release_version: str | None = None
    log_level: str = "INFO"


OPTIONS = (
    Option(("--config",), "properties", "The server.properties to go by; may stand without --config, too."),
    Option(("--override",), "override", "One property, before environment and file.", multiple=True),
    Option(("--dev",), "dev", "One broker is enough, nobody waits, and the data goes when it stops.", is_flag=True),
    Option(("--log-dirs", "--log-dir"), "log_dirs", "Where the data is kept: short for log.dirs."),
    Option(("--port",), "port", "Listen on this port of 127.0.0.1 and nowhere else; 0 takes a free one."),
    Option(("--compatible-with",), "compatible_with", "Tell clients of the APIs of that Apache Kafka: 0.8 to 4.4."),
    Option(("--feature",), "feature", "A feature's level in a new cluster: transaction.version=1.", multiple=True),
    Option(("--release-version",), "release_version", "Start a new cluster with the levels of that Apache Kafka: 3.9."),
    Option(("--log-level",), "log_level", "How much to say: DEBUG, INFO, WARNING or ERROR. INFO."),
)


def read(arguments: Sequence[str]) -> Options | None:
    """The options, or None for whatever needs more words than a start: help, and mistakes."""
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
    """Serve until the process is told to stop; its exit code."""
    level = logging.getLevelNamesMapping().get(options.log_level.upper())
    if level is None:
        return _fail(f"--log-level is {options.log_level!r}, but must be one of DEBUG, INFO, WARNING, ERROR")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    try:
        properties = gathered(options, os.environ)
        features = levels(options)
        if options.dev and not {"log.dirs", "log.dir"} & set(properties):
            from tempfile import TemporaryDirectory

            with TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True) as directory:
                return _run({**properties, "log.dirs": directory}, features, dev=True)
        return _run(properties, features, dev=options.dev)
    except (ConfigError, OSError) as error:
        return _fail(str(error))


def gathered(options: Options, environment: "os._Environ[str] | dict[str, str]") -> dict[str, str]:
    """All properties, from the file, the environment and the command line.

    Raises:
        ConfigError, OSError: a source that cannot be read.
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
    overrides = {**short, **sources.parse_overrides(options.override)}
    return sources.merged(file=file, environment=sources.from_environment(environment), overrides=overrides)


def levels(options: Options) -> dict[str, int]:
    """The levels of features that a new cluster is to have.

    Raises:
        ConfigError: there is no such feature, level or release, or one level rests on another that is not there.
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


def _run(properties: dict[str, str], features: dict[str, int], *, dev: bool) -> int:
    config = BrokerConfig.from_properties(properties, dev=dev)
    return run(config, announce, features)


def announce(server: Server) -> None:
    """Say where the broker listens, and how to talk to it."""
    config = server.config
    bound = {listener.endpoint.name: listener.endpoint for listener in server.listeners}
    client = next(iter(config.advertised_listeners))
    client = client._replace(port=client.port or bound[client.name].port, host=client.host or "127.0.0.1")
    where = ", ".join(map(str, bound.values()))
    snippet = SNIPPET.format(address=_address(client))
    sys.stdout.write(
        f"Barnabas {__version__}, node {config.node_id}, listens on {where}; data in {', '.join(config.log_dirs)}\n\n"
        f"{snippet}\n"
    )
    sys.stdout.flush()


def _address(endpoint: Endpoint) -> str:
    return str(endpoint).partition("://")[2]


def _fail(message: str) -> int:
    sys.stderr.write(f"Error: {message}\n")
    return 1
