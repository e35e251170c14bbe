"""The table of mechanisms: how each one is created from the configs of a listener.

Knows nothing of any mechanism but its name. A mechanism is imported when a listener enables it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.config.settings import ListenerSettings
from barnabas.config.validators import ConfigError
from barnabas.security.sasl.jaas import JaasError, LoginModule, login_module
from barnabas.security.sasl.mechanism import Mechanism
from barnabas.security.sasl.scram import Credentials, Scram

ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
MAX_REAUTH = "connections.max.reauth.ms"

LOGIN_MODULES = frozenset({
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "com.sun.security.auth.module.Krb5LoginModule",
})  # fmt: skip
"""The accepted classes of login modules. The mechanism decides what is done, not the class, as in Apache Kafka."""


class Surroundings(NamedTuple):
    """What mechanisms need besides their configs."""

    credentials: Credentials
    random_bytes: Callable[[int], bytes]


class Enabled(NamedTuple):
    """A mechanism that a listener enables."""

    mechanism: Mechanism
    max_reauth_ms: int  #: the maximum time between two authentications of a client; 0 sets no limit


Make = Callable[[str, ListenerSettings, LoginModule, Surroundings], Mechanism]


def _plain(name: str, configs: ListenerSettings, module: LoginModule, around: Surroundings) -> Mechanism:
    from barnabas.security.sasl.plain import Plain

    return Plain(module.options)


def _scram(name: str, configs: ListenerSettings, module: LoginModule, around: Surroundings) -> Mechanism:
    return Scram(name, around.credentials, around.random_bytes)


def _oauthbearer(name: str, configs: ListenerSettings, module: LoginModule, around: Surroundings) -> Mechanism:
    from barnabas.security.sasl.oauthbearer import OAuthBearer
    from barnabas.security.sasl.oauthbearer_validators import validator

    return OAuthBearer(validator(configs, module.options))


def _gssapi(name: str, configs: ListenerSettings, module: LoginModule, around: Surroundings) -> Mechanism:
    from barnabas.security.sasl.gssapi import from_login

    rules = configs["sasl.kerberos.principal.to.local.rules"]
    return from_login(module.options, configs["sasl.kerberos.service.name"], rules)


MECHANISMS: Mapping[str, Make] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauthbearer,
    "GSSAPI": _gssapi,
}


def enabled(configs: ListenerSettings, around: Surroundings) -> dict[str, Enabled]:
    """Returns the mechanisms that the listener enables, by name, in the order of its config.

    :raises ConfigError: a mechanism is unknown, has no login module, or one that is not valid
    """
    return {name: _enabled(name, configs, around) for name in configs[ENABLED]}


def _enabled(name: str, configs: ListenerSettings, around: Surroundings) -> Enabled:
    make = MECHANISMS.get(name)
    if make is None:
        raise ConfigError(ENABLED, name, f"a list of these: {', '.join(MECHANISMS)}")
    module = configured_module(configs, name)
    return Enabled(make(name, configs, module, around), configs.of_mechanism(name, MAX_REAUTH))


def configured_module(configs: ListenerSettings, name: str) -> LoginModule:
    """Returns the login module of a mechanism on the listener with these configs.

    :raises ConfigError: it has none, or one that is not valid
    """
    of_listener = f"listener.name.{configs.listener_name.lower()}.{name.lower()}.{JAAS}"
    text = configs.of_mechanism(name, JAAS) or configs[JAAS]
    if text is None:
        raise ConfigError(of_listener, "", f"the login module of {name}")
    try:
        module = login_module(text)
    except JaasError as error:
        raise ConfigError(of_listener, None, f"one login module: {error}") from error
    if module.class_name not in LOGIN_MODULES:
        raise ConfigError(of_listener, None, f"of one of the classes {', '.join(sorted(LOGIN_MODULES))}")
    return module
