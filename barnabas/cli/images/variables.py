"""The common part of the ``configure`` scripts of Apache Kafka's and Confluent's images.

Knows nothing of where properties are written. Rules and messages are those of Apache Kafka's script in
``docker/resources/common-scripts`` (KIP-975), which come from Confluent's.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.config.sources import ENVIRONMENT_PREFIX, NOT_CONFIGS, name_of

#: Variables with the name of a file in the secrets' directory; another property has its path or contents.
_KEYSTORE = (
    ("KAFKA_SSL_KEYSTORE_FILENAME", "KAFKA_SSL_KEYSTORE_LOCATION", False),
    ("KAFKA_SSL_KEY_CREDENTIALS", "KAFKA_SSL_KEY_PASSWORD", True),
    ("KAFKA_SSL_KEYSTORE_CREDENTIALS", "KAFKA_SSL_KEYSTORE_PASSWORD", True),
)
_TRUSTSTORE = (
    ("KAFKA_SSL_TRUSTSTORE_FILENAME", "KAFKA_SSL_TRUSTSTORE_LOCATION", False),
    ("KAFKA_SSL_TRUSTSTORE_CREDENTIALS", "KAFKA_SSL_TRUSTSTORE_PASSWORD", True),
)
_JAAS = "KAFKA_OPTS should contain 'java.security.auth.login.config' property."


class ImageError(Exception):
    """The variables do not make a configuration; the message is that of the image's script."""


def ensure(variables: Mapping[str, str], name: str) -> str:
    """Returns the value of a variable.

    :raises ImageError: it is not set
    """
    if not variables.get(name):
        raise ImageError(f"{name} environment variable not set")
    return variables[name]


def completed(variables: Mapping[str, str], secrets: Path) -> tuple[dict[str, str], list[str]]:
    """Returns the variables with those that are derived from others, and the messages of the script.

    :raises ImageError: one is missing, or contradicts another one
    """
    found, said = dict(variables), []
    for name in ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"):
        if name in found:
            # Apache Kafka before 4 accepts a list that ends with a comma, as Testcontainers for .NET makes it.
            found[name] = found[name].rstrip(", ")
    advertised = found.get("KAFKA_ADVERTISED_LISTENERS", "")
    is_controller = found.get("KAFKA_PROCESS_ROLES") == "controller"
    if is_controller:
        if advertised:
            raise ImageError("KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller.")
        found.pop("KAFKA_ADVERTISED_LISTENERS", None)
    elif advertised and not found.get("KAFKA_LISTENERS"):
        found["KAFKA_LISTENERS"] = listeners_of(advertised)
    if "SSL://" in advertised:
        said.append("SSL is enabled.")
        _add_stores(found, secrets)
    if re.search(r"SASL_.*://", advertised):
        said.append("SASL is enabled.")
        if "java.security.auth.login.config" not in ensure(found, "KAFKA_OPTS"):
            said.append(_JAAS)
    return found, said


def listeners_of(advertised: str) -> str:
    """Returns listeners on all interfaces, with the names and ports of these advertised ones."""
    return re.sub(r"://[^:]*:", "://0.0.0.0:", advertised)


def properties(variables: Mapping[str, str], leave_out: Iterable[str] = ()) -> dict[str, str]:
    """Returns a property for each variable that begins with ``KAFKA_``, except those of Java and ``leave_out``."""
    left_out = NOT_CONFIGS | set(leave_out)
    return {
        name_of(variable): value
        for variable, value in variables.items()
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in left_out
    }


def _add_stores(variables: dict[str, str], secrets: Path) -> None:
    client_auth = variables.get("KAFKA_SSL_CLIENT_AUTH", "")
    checks_clients = "required" in client_auth or "requested" in client_auth
    for variable, becomes, is_contents in (*_KEYSTORE, *(_TRUSTSTORE if checks_clients else ())):
        file = secrets / ensure(variables, variable)
        if not file.exists():
            raise ImageError(f"{file} file does not exist")
        variables[becomes] = file.read_text("utf-8").rstrip("\n") if is_contents else str(file)
