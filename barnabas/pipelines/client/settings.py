"""What a client is told about a cluster: Kafka's own client settings by their Java names, checked before it connects.

Knows nothing of topics, offsets and Spark; every value is text until kafka-python gets it, so that settings can be
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
    """A setting that is unknown, cannot mean anything here, or has a value that it cannot have; the text names it."""


class Setting(NamedTuple):
    """One setting of Kafka's clients: what its value must look like, and what it is where nothing is said."""

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
            raise ValueError(f"must be one of {', '.join(choice or 'nothing at all' for choice in choices)}")
        return value

    return check


def _servers(value: str) -> str:
    for server in filter(None, (part.strip() for part in value.split(","))):
        if not re.fullmatch(r"(.*://)?(\[[^]]+]|[^:\s]+):\d+", server):
            raise ValueError(f"must be host:port, or several of these with commas between them: {server!r} is none")
    if not value.strip(" ,"):
        raise ValueError("must name at least one host:port")
    return value


STORES = ("JKS", "PKCS12", "PEM")

SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("bootstrap.servers", _servers, None, "host:port of some brokers of the cluster, with commas between"),
        Setting("client.id", str, "barnabas-spark", "what this client calls itself in the broker's logs and quotas"),
        Setting("request.timeout.ms", _whole, "30000", "how long to wait for one answer of a broker"),
        Setting("default.api.timeout.ms", _whole, "60000", "how long to try again before giving up"),
        Setting("retry.backoff.ms", _whole, "100", "the pause before trying again"),
        Setting("reconnect.backoff.ms", _whole, "50", "the pause before the second try to connect"),
        Setting("reconnect.backoff.max.ms", _whole, "1000", "the longest pause between two tries to connect"),
        Setting("connections.max.idle.ms", _whole, "540000", "when to close a connection that is not used"),
        Setting("metadata.max.age.ms", _whole, "300000", "when to ask again who leads which partition"),
        Setting("socket.connection.setup.timeout.ms", _whole, "10000", "how long connecting may take"),
        Setting("socket.connection.setup.timeout.max.ms", _whole, "30000", "how long it may take after failures"),
        Setting(
            "client.dns.lookup",
            _one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
            "use_all_dns_ips",
            "which addresses of a host are tried",
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
        Setting("ssl.truststore.certificates", str, None, "the certificates to trust themselves, in PEM"),
        Setting("ssl.keystore.location", str, None, "a file with the client's key and certificates"),
        Setting("ssl.keystore.type", _one_of(*STORES), None, "JKS, PKCS12 or PEM; by the file's content without it"),
        Setting("ssl.keystore.password", str, None, "the password of a key store that is not in PEM"),
        Setting("ssl.keystore.key", str, None, "the client's private key itself, in PEM"),
        Setting("ssl.keystore.certificate.chain", str, None, "the client's certificates themselves, in PEM"),
        Setting("ssl.key.password", str, None, "the password of the client's private key"),
        Setting("ssl.enabled.protocols", str, "TLSv1.2,TLSv1.3", "the versions of TLS"),
        Setting("ssl.cipher.suites", str, None, "the cipher suites of TLS 1.2, by Java's names"),
        Setting(
            "ssl.endpoint.identification.algorithm",
            _one_of("https", ""),
            "https",
            "empty: a broker's certificate may be for another host",
        ),
    )
}

_NO_GROUP = "no consumer group is joined: Spark keeps the offsets of a query in its checkpoint"
_COLUMNS = "key and value are columns of bytes: cast or decode them in Spark"
REFUSED = {
    "auto.offset.reset": "where to begin is said by startingOffsets",
    "enable.auto.commit": "Spark keeps the offsets of a query in its checkpoint; see commitGroup to show its lag",
    "auto.commit.interval.ms": "Spark keeps the offsets of a query in its checkpoint",
    "enable.partition.eof": "the end of what is read is known before reading begins",
    "key.deserializer": _COLUMNS,
    "value.deserializer": _COLUMNS,
    "key.serializer": _COLUMNS,
    "value.serializer": _COLUMNS,
    "interceptor.classes": "there is no Java consumer to intercept",
    "metric.reporters": "there is no Java client whose metrics could be reported",
    "partitioner.class": "the column partition says where a record goes, else its key does as in Java's client",
    "max.poll.records": "records come as columns; max.partition.fetch.bytes says how much is fetched at a time",
    "group.id": _NO_GROUP,
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "session.timeout.ms": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "max.poll.interval.ms": _NO_GROUP,
    "partition.assignment.strategy": _NO_GROUP,
    "allow.auto.create.topics": "reading never creates a topic",
}
"""Settings of the Java clients that would break what is meant, or do nothing; and why."""


@dataclass(frozen=True)
class ClientSettings:
    """Settings that were given, by name and in order of names; made by `parse`."""

    given: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "ClientSettings":
        """Check settings by their Java names, without ``kafka.`` before them; raises BadSetting."""
        for name, value in options.items():
            check_setting(name, value, SETTINGS, REFUSED, "this client")
        settings = cls(tuple(sorted(options.items())))
        if "bootstrap.servers" not in options:
            raise BadSetting("kafka.bootstrap.servers is missing: say host:port of a broker")
        if settings["security.protocol"] in ("SASL_PLAINTEXT", "SASL_SSL"):
            settings._check_sasl()
        return settings

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return dict(self.given)

    def __getitem__(self, name: str) -> str:
        """What was said, else the default; empty where there is none."""
        return self._by_name.get(name, SETTINGS[name].default or "")

    def seconds(self, name: str) -> float:
        """A setting in milliseconds, as seconds."""
        return int(self[name]) / 1000

    def __getstate__(self) -> dict[str, object]:
        return {"given": self.given}

    def __setstate__(self, state: dict[str, object]) -> None:
        object.__setattr__(self, "given", state["given"])

    def __repr__(self) -> str:
        return f"ClientSettings({self['bootstrap.servers']}, {self['security.protocol']})"

    def for_kafka_python(self) -> dict[str, Any]:
        """The keyword arguments that mean the same to kafka-python's connections and its admin client."""
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
                "kafka.sasl.jaas.config: for GSSAPI the ticket is taken from the cache that kinit fills; leave it out"
            )
        try:
            sasl_settings(self._by_name)
        except InvalidProperty as problem:
            raise BadSetting(f"kafka.{problem}") from None


_NOT_KAFKA_PYTHONS = ("bootstrap.servers", "default.api.timeout.ms", "retry.backoff.ms")


def check_setting(name: str, value: str, known: Mapping[str, Setting], refused: Mapping[str, str], whose: str) -> None:
    """Nothing, if it is one of the `known` settings, with such a value; raises BadSetting, which shows no password."""
    if name in refused:
        raise BadSetting(f"kafka.{name} cannot be set: {refused[name]}")
    if name not in known:
        raise BadSetting(f"kafka.{name} is no setting of {whose}{near(name, known, 'kafka.')}")
    try:
        known[name].check(value)
    except ValueError as problem:
        shown = "" if any(word in name for word in ("password", "jaas", "secret")) else f" {value!r}"
        raise BadSetting(f"kafka.{name}{shown}: {problem}") from None


def near(name: str, known: Iterable[str], prefix: str = "") -> str:
    """``; did you mean ...?`` where something known looks like `name`, else nothing."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"; did you mean {prefix}{found[0]}?" if found else ""
