"""The variables of bitnamilegacy/kafka (and bitnami/kafka before it).

Knows nothing of the files that properties come from. Rules are those of the image's ``libkafka.sh``: ``KAFKA_CFG_…``
are configs; other variables set users, key stores and trust stores.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from barnabas.cli.images.variables import ImageError

PREFIX = "KAFKA_CFG_"
DATA, MOUNTED, CONFIG = "bitnami/kafka/data", "bitnami/kafka/config", "opt/bitnami/kafka/config"

#: Settings of the image's own server.properties that other nodes depend on.
_BASE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
#: Configs whose variable may have the prefix ``KAFKA_`` only, as in older images.
_ALIASES = (
    "ADVERTISED_LISTENERS", "AUTO_CREATE_TOPICS_ENABLE", "BROKER_ID", "NODE_ID", "CONTROLLER_QUORUM_VOTERS",
    "PROCESS_ROLES", "DEFAULT_REPLICATION_FACTOR", "DELETE_TOPIC_ENABLE", "INTER_BROKER_LISTENER_NAME", "LISTENERS",
    "LISTENER_SECURITY_PROTOCOL_MAP", "LOG_DIRS", "LOG_FLUSH_INTERVAL_MESSAGES", "LOG_FLUSH_INTERVAL_MS",
    "LOG_RETENTION_BYTES", "LOG_RETENTION_HOURS", "LOG_SEGMENT_BYTES", "MESSAGE_MAX_BYTES", "NUM_IO_THREADS",
    "NUM_NETWORK_THREADS", "NUM_PARTITIONS", "NUM_RECOVERY_THREADS_PER_DATA_DIR", "OFFSETS_TOPIC_REPLICATION_FACTOR",
    "SOCKET_RECEIVE_BUFFER_BYTES", "SOCKET_REQUEST_MAX_BYTES", "SOCKET_SEND_BUFFER_BYTES",
    "SSL_ENDPOINT_IDENTIFICATION_ALGORITHM", "TRANSACTION_STATE_LOG_MIN_ISR",
    "TRANSACTION_STATE_LOG_REPLICATION_FACTOR",
)  # fmt: skip
#: Old names of variables, by the new one.
_RENAMED = {
    "KAFKA_CFG_LOG_DIRS": "KAFKA_LOGS_DIRS",
    "KAFKA_CFG_LOG_SEGMENT_BYTES": "KAFKA_SEGMENT_BYTES",
    "KAFKA_CFG_MESSAGE_MAX_BYTES": "KAFKA_MAX_MESSAGE_BYTES",
    "KAFKA_CLIENT_USERS": "KAFKA_BROKER_USER",
    "KAFKA_CLIENT_PASSWORDS": "KAFKA_BROKER_PASSWORD",
}
#: Defaults of variables. The names and passwords are those of the image, and publicly known.
_DEFAULTS = {
    "KAFKA_CFG_SASL_ENABLED_MECHANISMS": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_INTER_BROKER_USER": "user",
    "KAFKA_INTER_BROKER_PASSWORD": "bitnami",
    "KAFKA_CONTROLLER_USER": "controller_user",
    "KAFKA_CONTROLLER_PASSWORD": "bitnami",
    "KAFKA_CLIENT_USERS": "user",
    "KAFKA_CLIENT_PASSWORDS": "bitnami",
    "KAFKA_TLS_TYPE": "JKS",
    "KAFKA_TLS_CLIENT_AUTH": "required",
}
_MODULES = {"PLAIN": "plain.PlainLoginModule"}
_SCRAM_MODULE = "scram.ScramLoginModule"
_NOT_RECOMMENDED = "this setting is not recommended for production environments"
_UNEVEN = "Specify the same number of passwords on KAFKA_CLIENT_PASSWORDS as the number of users on KAFKA_CLIENT_USERS!"


def properties(variables: Mapping[str, str], root: Path) -> tuple[dict[str, str], list[str]]:
    """Returns the properties for the variables, and the messages to print.

    :param root: the root directory of the image's paths
    :raises ImageError: variables contradict each other
    """
    given = _renamed(variables)
    known = {**_DEFAULTS, **{name: value for name, value in given.items() if value}}
    configs = {_name_of(name): value for name, value in given.items() if name.startswith(PREFIX)}
    configs.pop("zookeeper.connect", None)
    found = {**_BASE, "log.dirs": str(root / DATA)}
    said = []
    protocols = _protocols(configs)
    if any(protocol.endswith("SSL") for protocol in protocols.values()):
        found.update(_stores(known, root))
    if any(protocol.startswith("SASL") for protocol in protocols.values()):
        found["sasl.enabled.mechanisms"] = known["KAFKA_CFG_SASL_ENABLED_MECHANISMS"]
    for listener, protocol in protocols.items():
        if protocol.startswith("SASL"):
            found.update(_logins(known, listener))
        if protocol.endswith("SSL") and (checks := given.get(f"KAFKA_TLS_{listener.upper()}_CLIENT_AUTH")):
            found[f"listener.name.{listener.lower()}.ssl.client.auth"] = checks
    if "PLAINTEXT" in protocols.values():
        said.append(f"Kafka has been configured with a PLAINTEXT listener, {_NOT_RECOMMENDED}.")
    return {**found, **configs}, said


def _renamed(variables: Mapping[str, str]) -> dict[str, str]:
    aliases = {f"{PREFIX}{suffix}": f"KAFKA_{suffix}" for suffix in _ALIASES} | _RENAMED
    return {**variables, **{name: variables[alias] for name, alias in aliases.items() if alias in variables}}


def _name_of(variable: str) -> str:
    """Returns the name of a config: an underscore becomes a dot, except in the names of two protocols."""
    name = variable.removeprefix(PREFIX).lower().replace("_", ".")
    return name.replace("sasl.ssl", "sasl_ssl").replace("sasl.plaintext", "sasl_plaintext")


def _protocols(configs: Mapping[str, str]) -> dict[str, str]:
    """Returns the security protocol of each listener."""
    names = [each.partition("://")[0].strip() for each in configs.get("listeners", "PLAINTEXT://:9092").split(",")]
    pairs = (each.partition(":") for each in configs.get("listener.security.protocol.map", "").split(","))
    mapped = {name.strip(): protocol.strip() for name, colon, protocol in pairs if colon}
    return {name: mapped.get(name, name) for name in names if name}


def _logins(known: Mapping[str, str], listener: str) -> Iterator[tuple[str, str]]:
    """Yields the SASL properties of a listener for clients, brokers or controllers."""
    prefix = f"listener.name.{listener.lower()}"
    mechanisms = known["KAFKA_CFG_SASL_ENABLED_MECHANISMS"].split(",")
    user = None
    names, passwords = (re.split("[,;]", known[f"KAFKA_CLIENT_{what}"]) for what in ("USERS", "PASSWORDS"))
    if len(names) != len(passwords):
        raise ImageError(_UNEVEN)
    users = list(zip(names, passwords, strict=True))
    for role, name, config in (
        ("INTER_BROKER", "INTER_BROKER_LISTENER_NAME", "sasl.mechanism.inter.broker.protocol"),
        ("CONTROLLER", "CONTROLLER_LISTENER_NAMES", "sasl.mechanism.controller.protocol"),
    ):
        if listener not in known[f"{PREFIX}{name}"].split(","):
            continue
        mechanism = known.get(f"{PREFIX}SASL_MECHANISM_{role}_PROTOCOL")
        if mechanism is None:
            variable = f"{PREFIX}SASL_MECHANISM_{role}_PROTOCOL"
            raise ImageError(f"When using SASL for {listener}, the mechanism should be provided using {variable}")
        yield config, mechanism
        user = (known[f"KAFKA_{role}_USER"], known[f"KAFKA_{role}_PASSWORD"])
        if role == "CONTROLLER":
            yield f"{prefix}.sasl.enabled.mechanisms", mechanism
            mechanisms, users = [mechanism], []
    for mechanism in mechanisms:
        module = _MODULES.get(mechanism, _SCRAM_MODULE)
        words = [f"org.apache.kafka.common.security.{module} required"]
        if user is not None:
            words += [f'username="{user[0]}"', f'password="{user[1]}"']
        if mechanism == "PLAIN":
            words += [f'user_{name}="{password}"' for name, password in (*users, *([user] if user else ()))]
        yield f"{prefix}.{mechanism.lower()}.sasl.jaas.config", " ".join(words) + ";"


def _stores(known: Mapping[str, str], root: Path) -> Iterator[tuple[str, str]]:
    """Yields the properties of the key store and the trust store.

    :raises ImageError: the files are not at the image's paths
    """
    kind = known["KAFKA_TLS_TYPE"]
    ending = {"JKS": "jks", "PEM": "pem"}.get(kind)
    if ending is None:
        raise ImageError("The allowed values for KAFKA_TLS_TYPE are: JKS PEM")
    certs = next(
        (each for each in (root / CONFIG / "certs", root / MOUNTED / "certs") if each.is_dir()), root / MOUNTED
    )
    keystore = certs / f"kafka.keystore.{ending}"
    truststore = Path(known.get("KAFKA_TLS_TRUSTSTORE_FILE") or certs / f"kafka.truststore.{ending}")
    for file in (keystore, truststore):
        if not file.is_file():
            what = f"In order to configure the TLS encryption for Kafka with {kind} certs"
            raise ImageError(f"{what} you must mount {file.name} to {certs}")
    yield "ssl.client.auth", known["KAFKA_TLS_CLIENT_AUTH"]
    password = known.get("KAFKA_CERTIFICATE_PASSWORD")
    for store, file in (("keystore", keystore), ("truststore", truststore)):
        yield f"ssl.{store}.type", kind
        if kind == "JKS":
            yield f"ssl.{store}.location", str(file)
            if password:
                yield f"ssl.{store}.password", password
    if kind == "PEM":
        for config, file in (
            ("ssl.keystore.key", keystore.with_suffix(".key")),
            ("ssl.keystore.certificate.chain", keystore),
            ("ssl.truststore.certificates", truststore),
        ):
            yield config, file.read_text("utf-8").strip().replace("\n", "\\n")
    if password:
        yield "ssl.key.password", password
