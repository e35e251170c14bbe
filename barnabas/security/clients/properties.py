"""Converts the security properties of Java's clients to kafka-python's keyword arguments.

Knows nothing of the other properties. Follows Apache Kafka's ``SslConfigs``, ``SaslConfigs`` and
``CommonClientConfigs``.
"""

from collections.abc import Mapping
from typing import Any, Final

from barnabas.security.sasl.jaas import JaasError, LoginModule, login_module

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

SECURITY: Final = "org.apache.kafka.common.security"
_USER: Final = 'username="..." password="...";'
#: What ``sasl.jaas.config`` has to be, for errors.
EXAMPLES: Final = {
    "PLAIN": f"user and password for PLAIN: {SECURITY}.plain.PlainLoginModule required {_USER}",
    "SCRAM-SHA-256": f"user and password for SCRAM-SHA-256: {SECURITY}.scram.ScramLoginModule required {_USER}",
    "SCRAM-SHA-512": f"user and password for SCRAM-SHA-512: {SECURITY}.scram.ScramLoginModule required {_USER}",
    "OAUTHBEARER": f"a login module: {SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
}


class InvalidProperty(ValueError):
    """A security property that cannot be used. The text names the property, and shows no secret."""


def security_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns kafka-python's keyword arguments for these properties. Stores are read now, and no file is left behind.

    :raises InvalidProperty: a property has an invalid value, or a required one is missing
    """
    protocol = _one_of(properties, "security.protocol", "PLAINTEXT", PROTOCOLS)
    settings: dict[str, Any] = {"security_protocol": protocol}
    if protocol.startswith("SASL"):
        settings |= sasl_settings(properties)
    if protocol.endswith("SSL"):
        from barnabas.security.clients.stores import ssl_context

        try:
            settings["ssl_context"] = ssl_context(properties)
        except (OSError, ValueError) as error:
            raise InvalidProperty(f"ssl.*: {error}") from None
    return settings


def sasl_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns kafka-python's keyword arguments for SASL.

    :raises InvalidProperty: a property has an invalid value, or a required one is missing
    """
    mechanism = _one_of(properties, "sasl.mechanism", "GSSAPI", MECHANISMS)
    settings: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "GSSAPI":
        settings["sasl_kerberos_service_name"] = properties.get("sasl.kerberos.service.name") or "kafka"
        return settings
    module = _login_module(properties, mechanism)
    if mechanism == "OAUTHBEARER":
        from barnabas.security.clients.oauth import token_provider

        settings["sasl_oauth_token_provider"] = token_provider(properties, module.options)
        return settings
    user, password = module.options.get("username"), module.options.get("password")
    if user is None or password is None:
        raise InvalidProperty(f"sasl.jaas.config must give {EXAMPLES[mechanism]}")
    if mechanism.startswith("SCRAM"):
        from barnabas.security.clients.scram import scram_user

        user = scram_user(user, is_token=module.options.get("tokenauth", "").lower() == "true")
    return settings | {"sasl_plain_username": user, "sasl_plain_password": password}


def _login_module(properties: Mapping[str, str], mechanism: str) -> LoginModule:
    """Returns the login module of ``sasl.jaas.config``.

    :raises InvalidProperty: it is missing, or is not a login module
    """
    text = properties.get("sasl.jaas.config", "").strip()
    if not text:
        raise InvalidProperty(f"sasl.jaas.config is missing, but must give {EXAMPLES[mechanism]}")
    try:
        return login_module(text)
    except JaasError as error:
        raise InvalidProperty(f"sasl.jaas.config: {error}; it must give {EXAMPLES[mechanism]}") from None


def _one_of(properties: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = properties.get(name, default).strip().upper()
    if value not in choices:
        raise InvalidProperty(f"{name} is {value!r}, but must be one of {', '.join(choices)}")
    return value
