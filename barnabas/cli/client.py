"""The common part of commands that connect to a broker: its address, the client's properties, and errors in one line.

Knows nothing of any command. The client is kafka-python.
"""

import contextlib
import functools
import logging
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from barnabas.cli.extras import is_missing
from barnabas.config import ConfigError
from barnabas.config.sources import parse_properties
from barnabas.diagnosis import Address, AdvertisedBroker, diagnose, diagnose_advertised, probe
from barnabas.errors import NONE, KafkaError
from barnabas.security.clients.properties import security_settings

F = TypeVar("F", bound=Callable[..., Any])

BOOTSTRAP_TIMEOUT_MS = 10_000
LOCAL = "localhost:9092"
#: Java's client properties that kafka-python does not have, or has with another meaning.
_OMITTED = ("bootstrap.servers", "key.serializer", "value.serializer", "key.deserializer", "value.deserializer")


class Cluster:
    """A Kafka cluster: its bootstrap servers, and the properties of clients that connect to it."""

    def __init__(self, bootstrap_server: str, properties: Mapping[str, str]) -> None:
        self.bootstrap_server = bootstrap_server
        self.properties = properties
        self._last_settings: Mapping[str, Any] = {}  #: those of the client that was configured last

    def settings(
        self, defaults: Mapping[str, Any], given: Mapping[str, str] | None = None, **own: Any
    ) -> dict[str, Any]:
        """Returns the keyword arguments of a client that has these defaults.

        :param given: properties that override the command's ``own`` settings, which override the file's properties
        :raises InvalidProperty: a property of TLS or SASL is invalid
        """
        given = given or {}
        settings = {
            "bootstrap_servers": self.bootstrap_server.split(","),
            "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
            **client_settings(self.properties, defaults),
            **own,
            **client_settings(given, defaults),
            **_security_settings({**self.properties, **given}),
        }
        self._last_settings = settings
        return settings

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        """Opens a ``KafkaAdminClient``, and closes it at the end."""
        from kafka import KafkaAdminClient

        client = KafkaAdminClient(**self.settings(KafkaAdminClient.DEFAULT_CONFIG))
        try:
            yield client
        finally:
            client.close()

    def check_advertised(self) -> None:
        """Checks that the client which was configured last can connect to a broker at its advertised address.

        Otherwise, producers and consumers of kafka-python retry for minutes or without end, and print nothing.

        :raises click.ClickException: it can connect to none
        """
        if self._is_proxied:
            return
        brokers = self._advertised()
        if any(probe(broker.address, tls=self._uses_tls) is None for broker in brokers):
            return
        problem = diagnose_advertised(self._servers[0], brokers, tls=self._uses_tls)
        if problem is not None:
            raise click.ClickException(problem)

    def diagnose(self) -> str | None:
        """Returns why the client that was configured last cannot reach the cluster; None if it should."""
        if self._is_proxied:
            return None
        return diagnose(self._servers, self._advertised, tls=self._uses_tls)

    def _advertised(self) -> list[AdvertisedBroker]:
        from kafka import KafkaAdminClient

        known = {
            name: self._last_settings[name] for name in KafkaAdminClient.DEFAULT_CONFIG if name in self._last_settings
        }
        with contextlib.closing(KafkaAdminClient(**known)) as admin:
            brokers = admin._manager.cluster.brokers()
        return [AdvertisedBroker(each.node_id, Address(each.host, each.port)) for each in brokers]

    @property
    def _servers(self) -> list[Address]:
        return [Address.parse(server) for server in self.bootstrap_server.split(",")]

    @property
    def _uses_tls(self) -> bool:
        return str(self._last_settings.get("security_protocol", "")).upper() in ("SSL", "SASL_SSL")

    @property
    def _is_proxied(self) -> bool:
        """Whether the client connects through a proxy, so that addresses cannot be checked from here."""
        return bool(self._last_settings.get("proxy_url") or self._last_settings.get("socks5_proxy"))


def bootstrap_option_named(*names: str) -> Callable[[F], F]:
    """Returns the option of the cluster's address."""
    where = f"{LOCAL}, or bootstrap.servers of the file"
    return click.option(*names, show_default=where, metavar="HOST:PORT[,...]", help="The broker to connect to.")


bootstrap_option = bootstrap_option_named("--bootstrap-server", "--broker-list")
config_option = click.option(
    "--command-config", "--consumer.config", "--producer.config", metavar="FILE",
    help="Properties of the client, by Java's names or kafka-python's.",
)  # fmt: skip


def cluster_options(command: F, *, bootstrap: Callable[[Any], Any] = bootstrap_option, extra: str = "cli") -> F:
    """Adds the options of a cluster, passes it as ``cluster``, and prints errors in one line.

    :param bootstrap: the option of its address, if the command uses one of the usual names for something else
    :param extra: the extra that has what the command needs
    """

    @config_option
    @functools.wraps(command)
    def wrapped(bootstrap_server: str | None, command_config: str | None, **given: Any) -> Any:
        properties = read_properties(command_config) if command_config else {}
        cluster = Cluster(bootstrap_server or properties.get("bootstrap.servers") or LOCAL, properties)
        with errors_in_one_line(cluster, extra):
            return command(cluster=cluster, **given)

    return cast(F, bootstrap(wrapped))


def read_properties(path: str) -> dict[str, str]:
    """Reads a properties file. :raises click.ClickException: it cannot be read"""
    try:
        return parse_properties(Path(path).read_text("utf-8"))
    except (OSError, ConfigError) as error:
        raise click.ClickException(str(error)) from None


@contextlib.contextmanager
def errors_in_one_line(cluster: Cluster, extra: str = "cli") -> Iterator[None]:
    """Turns the errors of a client into one line, with a diagnosis if the cluster cannot be reached.

    If the client itself is not installed, the line says what to install.
    """
    try:
        import kafka.errors
        import rich  # noqa: F401
    except ImportError as error:
        raise is_missing(error, extra) from None
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        yield
    except (
        kafka.errors.KafkaConnectionError,
        kafka.errors.KafkaTimeoutError,
        kafka.errors.NodeNotReadyError,
        kafka.errors.IncompatibleBrokerVersion,
    ) as error:
        problem = cluster.diagnose()
        raise click.ClickException(f"{error_text(error)}: {problem}" if problem else error_text(error)) from None
    except kafka.errors.KafkaError as error:
        raise click.ClickException(error_text(error)) from None
    except (ValueError, TypeError, struct.error) as error:
        # kafka-python raises these for invalid arguments, and for numbers out of the range of their type.
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        raise click.Abort from None


def error_text(error: object) -> str:
    """Returns Kafka's name and the message of a client's error, which may be an exception or its text."""
    text = str(error).strip()
    known = KafkaError.by_code.get(getattr(error, "errno", NONE))
    if known is not None and type(error).__name__ == "UnrecognizedBrokerError":
        return f"{known.__name__}: {known.__doc__}"  # kafka-python has no class for this code
    # kafka-python's texts begin "[Error 40] InvalidConfigurationError: …", or with the name alone.
    found = re.match(r"(?:\[Error -?\d+\] (\w+?)(?:Error)?|(\w+?)Error)\b(?:: )?(.*)", text, re.DOTALL)
    name, message = (found[1] or found[2], found[3]) if found else (type(error).__name__.removesuffix("Error"), text)
    return f"{name}: {message}" if message else name


def results_of(response: Any) -> list[dict[str, Any]]:
    """Returns the results in a response: the items of its lists that have an error code.

    :raises click.ClickException: one of them has failed
    """
    whole = response if isinstance(response, dict) else response.to_dict()
    lists = [value for value in whole.values() if isinstance(value, list)]
    results = [item for items in lists for item in items if isinstance(item, dict) and "error_code" in item]
    for result in results:
        check_code(result["error_code"], result.get("error_message"))
    return results


def check_code(code: int, message: str | None = None) -> None:
    """Raises unless the error code is 0.

    :param message: the broker's error message; without it, Kafka's text for the code is used
    :raises click.ClickException: the code is not 0
    """
    name = error_name(code)
    if name is not None:
        kind = KafkaError.by_code.get(code)
        message = message or (kind.__doc__ if kind is not None else None)
        raise click.ClickException(f"{name}: {message}" if message else name)


def error_name(code: int) -> str | None:
    """Returns the name of an error code; None for 0."""
    if code == NONE:
        return None
    kind = KafkaError.by_code.get(code)
    return f"Error {code}" if kind is None else kind.__name__


def client_settings(properties: Mapping[str, str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Converts Java's client properties to kafka-python's keyword arguments, except those that it does not have."""
    settings: dict[str, Any] = {}
    for name, text in properties.items():
        keyword = name.replace(".", "_").replace("-", "_")
        if name not in _OMITTED and keyword in defaults:
            settings[keyword] = _typed(text.strip(), defaults[keyword])
    return settings


def _security_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns the keyword arguments of TLS and SASL; none where these have kafka-python's names."""
    if any(name.startswith(("security_", "ssl_", "sasl_")) for name in properties):
        return {}
    return security_settings(properties)


def _typed(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return text.lower() == "true"
    if text.lstrip("-").isdecimal():
        return int(text)
    return text


def pairs(items: tuple[str, ...], option: str, separator: str = "=") -> dict[str, str]:
    """Parses the ``key=value`` items of an option. :raises click.UsageError: an item has no separator or no key"""
    found = {}
    for item in items:
        name, equals, value = item.partition(separator)
        if not equals or not name.strip():
            raise click.UsageError(f"{option} is {item!r}, but must be key{separator}value")
        found[name.strip()] = value.strip()
    return found
