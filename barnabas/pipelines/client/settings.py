"""The settings of a client, by the names of Kafka's Java clients, checked before it connects.

Knows nothing of topics, offsets and Spark. All values are text until kafka-python gets them, so that settings can be
compared, hashed and sent to workers.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from barnabas.security.clients.properties import (
    MECHANISMS,
    PROTOCOLS,
    InvalidProperty,
    sasl_settings,
    security_settings,
)


class BadSetting(ValueError):
    """A setting is unknown, has no meaning here, or has a wrong value; the message names it."""


class Setting(NamedTuple):
    """A setting of Kafka's clients: its name, a check of its value, its default and its documentation."""

    name: str
    check: Callable[[str], object]
    default: str | None
    doc: str


def _whole(value: str) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _one_of(*choices: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choice or '(empty)' for choice in choices)}")
        return value

    return check


def _servers(value: str) -> str:
    for server in filter(None, (part.strip() for part in value.split(","))):
        if not re.fullmatch(r"(.*://)?(\[[^]]+]|[^:\s]+):\d+", server):
            raise ValueError(f"must be host:port pairs separated by commas, and {server!r} is none")
    if not value.strip(" ,"):
        raise ValueError("must contain at least one host:port")
    return value


STORES = ("JKS", "PKCS12", "PEM")

SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("bootstrap.servers", _servers, None, "host:port of some brokers of the cluster, separated by commas"),
        Setting("client.id", str, "barnabas-spark", "the name of this client in the brokers' logs and quotas"),
        Setting("request.timeout.ms", _whole, "30000", "how long to wait for a response"),
        Setting("default.api.timeout.ms", _whole, "60000", "how long to retry a request"),
        Setting("retry.backoff.ms", _whole, "100", "the pause before a retry"),
        Setting("reconnect.backoff.ms", _whole, "50", "the pause before the first reconnection"),
        Setting("reconnect.backoff.max.ms", _whole, "1000", "the longest pause before a reconnection"),
        Setting("connections.max.idle.ms", _whole, "540000", "when to close an idle connection"),
        Setting("metadata.max.age.ms", _whole, "300000", "when to refresh metadata"),
        Setting("socket.connection.setup.timeout.ms", _whole, "10000", "the timeout of a connection attempt"),
        Setting(
            "socket.connection.setup.timeout.max.ms",
            _whole,
            "30000",
            "the longest timeout of a connection attempt, after failures",
        ),
        Setting(
            "client.dns.lookup",
            _one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
            "use_all_dns_ips",
            "which addresses of a host to try",
        ),
        Setting("security.protocol", _one_of(*PROTOCOLS), "PLAINTEXT", f"one of {', '.join(PROTOCOLS)}"),
        Setting("sasl.mechanism", _one_of(*MECHANISMS), "GSSAPI", f"one of {', '.join(MECHANISMS)}"),
        Setting("sasl.jaas.config", str, None, "the login module with its options, written as for the Java client"),
        Setting("sasl.kerberos.service.name", str, "kafka", "the brokers' Kerberos principal"),
        Setting("sasl.oauthbearer.token.endpoint.url", str, None, "where tokens come from: https:, http: or file:"),
        Setting("sasl.oauthbearer.client.credentials.client.id", str, None, "the client, for the token endpoint"),
        Setting("sasl.oauthbearer.client.credentials.client.secret", str, None, "its secret"),
        Setting("sasl.oauthbearer.scope", str, None, "the scope of the tokens"),
        Setting("ssl.truststore.location", str, None, "a file with the certificates to trust: PEM, PKCS12 or JKS"),
        Setting("ssl.truststore.type", _one_of(*STORES), None, "JKS, PKCS12 or PEM; by the file's content without it"),
        Setting("ssl.truststore.password", str, None, "the password of a trust store that is not in PEM"),
        Setting("ssl.truststore.certificates", str, None, "the trusted certificates as PEM text"),
        Setting("ssl.keystore.location", str, None, "a file with the client's key and certificates"),
        Setting("ssl.keystore.type", _one_of(*STORES), None, "JKS, PKCS12 or PEM; by the file's content without it"),
        Setting("ssl.keystore.password", str, None, "the password of a key store that is not in PEM"),
        Setting("ssl.keystore.key", str, None, "the client's private key as PEM text"),
        Setting("ssl.keystore.certificate.chain", str, None, "the client's certificates as PEM text"),
        Setting("ssl.key.password", str, None, "the password of the client's private key"),
        Setting("ssl.enabled.protocols", str, "TLSv1.2,TLSv1.3", "the versions of TLS"),
        Setting("ssl.cipher.suites", str, None, "the cipher suites of TLS 1.2, by Java's names"),
        Setting(
            "ssl.endpoint.identification.algorithm",
            _one_of("https", ""),
            "https",
            "empty: accept a broker's certificate for another host",
        ),
    )
}

_NO_GROUP = "the source joins no consumer group: Spark keeps the offsets of a query in its checkpoint"
_COLUMNS = "key and value are columns of bytes: cast or decode them in Spark"
REFUSED = {
    "auto.offset.reset": "set startingOffsets instead",
    "enable.auto.commit": "Spark keeps the offsets of a query in its checkpoint; commitGroup shows its lag",
    "auto.commit.interval.ms": "Spark keeps the offsets of a query in its checkpoint",
    "enable.partition.eof": "the end of a range is known before it is read",
    "key.deserializer": _COLUMNS,
    "value.deserializer": _COLUMNS,
    "key.serializer": _COLUMNS,
    "value.serializer": _COLUMNS,
    "interceptor.classes": "there is no Java consumer",
    "metric.reporters": "there is no Java client",
    "partitioner.class": "the column partition selects the partition, or else the key does as with the Java producer",
    "max.poll.records": "records are read as columns; max.partition.fetch.bytes limits the size of a fetch",
    "group.id": _NO_GROUP,
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "session.timeout.ms": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "max.poll.interval.ms": _NO_GROUP,
    "partition.assignment.strategy": _NO_GROUP,
    "allow.auto.create.topics": "reading never creates a topic",
}
"""Settings of the Java clients that contradict how Spark reads and writes, or have no effect here, and why."""


@dataclass(frozen=True)
class ClientSettings:
    """The given settings, sorted by name; created by `parse`."""

    given: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "ClientSettings":
        """Checks settings by their Java names, without the prefix ``kafka.``.

        :raises BadSetting: a setting is unknown or wrong.
        """
        for name, value in options.items():
            check_setting(name, value, SETTINGS, REFUSED, "this client")
        settings = cls(tuple(sorted(options.items())))
        if "bootstrap.servers" not in options:
            raise BadSetting("kafka.bootstrap.servers is missing: give host:port of a broker")
        if settings["security.protocol"] in ("SASL_PLAINTEXT", "SASL_SSL"):
            settings._check_sasl()
        return settings

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return dict(self.given)

    def __getitem__(self, name: str) -> str:
        """Returns the given value, or the default, or an empty text if there is none."""
        return self._by_name.get(name, SETTINGS[name].default or "")

    def seconds(self, name: str) -> float:
        """Returns a setting that is in milliseconds, in seconds."""
        return int(self[name]) / 1000

    def __getstate__(self) -> dict[str, object]:
        return {"given": self.given}

    def __setstate__(self, state: dict[str, object]) -> None:
        object.__setattr__(self, "given", state["given"])

    def __repr__(self) -> str:
        return f"ClientSettings({self['bootstrap.servers']}, {self['security.protocol']})"

    def for_kafka_python(self) -> dict[str, Any]:
        """Returns the corresponding keyword arguments of kafka-python's connections and admin client."""
        result: dict[str, Any] = {
            name.replace(".", "_"): int(self[name]) if setting.check is _whole else self[name]
            for name, setting in SETTINGS.items()
            if name not in _NOT_KAFKA_PYTHONS and not name.startswith(("ssl.", "sasl."))
        }
        result["bootstrap_servers"] = [part.strip() for part in self["bootstrap.servers"].split(",") if part.strip()]
        try:
            return result | security_settings(self._by_name)
        except InvalidProperty as problem:
            raise BadSetting(f"kafka.{problem}") from None

    def _check_sasl(self) -> None:
        if self["sasl.mechanism"] == "GSSAPI" and self["sasl.jaas.config"]:
            raise BadSetting(
                "kafka.sasl.jaas.config cannot be set for GSSAPI: the ticket is taken from the cache of kinit"
            )
        try:
            sasl_settings(self._by_name)
        except InvalidProperty as problem:
            raise BadSetting(f"kafka.{problem}") from None


_NOT_KAFKA_PYTHONS = ("bootstrap.servers", "default.api.timeout.ms", "retry.backoff.ms")


def check_setting(name: str, value: str, known: Mapping[str, Setting], refused: Mapping[str, str], whose: str) -> None:
    """Checks that a setting is known and its value allowed.

    :param whose: what has these settings, for the message.
    :raises BadSetting: otherwise. The message contains no password.
    """
    if name in refused:
        raise BadSetting(f"kafka.{name} cannot be set: {refused[name]}")
    if name not in known:
        raise BadSetting(f"kafka.{name} is not a setting of {whose}{near(name, known, 'kafka.')}")
    try:
        known[name].check(value)
    except ValueError as problem:
        shown = "" if any(word in name for word in ("password", "jaas", "secret")) else f" {value!r}"
        raise BadSetting(f"kafka.{name}{shown}: {problem}") from None


def near(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Returns ``; did you mean ...?`` if a known name is similar, or else an empty text."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"; did you mean {prefix}{found[0]}?" if found else ""
