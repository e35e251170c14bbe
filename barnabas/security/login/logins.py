"""The table of logins: how a node logs in with each SASL mechanism, by the configs of a listener.

Knows nothing of any mechanism but its name. A mechanism is imported when a listener uses it. Follows Apache Kafka's
``SaslClientAuthenticator``, with the login modules of ``sasl.jaas.config``.
"""

from collections.abc import Callable, Mapping

from barnabas.config.settings import ListenerSettings
from barnabas.config.validators import ConfigError
from barnabas.security.login.login import Login
from barnabas.security.sasl.jaas import LoginModule
from barnabas.security.sasl.mechanisms import configured_module

Make = Callable[[str, ListenerSettings, LoginModule], Login]


def _plain(name: str, configs: ListenerSettings, module: LoginModule) -> Login:
    from barnabas.security.login.plain import plain

    user, password = _user_and_password(name, module)
    return lambda host: plain(user, password)


def _scram(name: str, configs: ListenerSettings, module: LoginModule) -> Login:
    from barnabas.security.login.scram import scram

    user, password = _user_and_password(name, module)
    is_token = module.options.get("tokenauth", "").lower() == "true"
    return lambda host: scram(name, user, password, is_token=is_token)


def _oauthbearer(name: str, configs: ListenerSettings, module: LoginModule) -> Login:
    from barnabas.security.login.oauthbearer import of_listener

    return of_listener(configs, module.options)


def _gssapi(name: str, configs: ListenerSettings, module: LoginModule) -> Login:
    from barnabas.security.login.gssapi import from_login

    return from_login(module.options, configs["sasl.kerberos.service.name"])


LOGINS: Mapping[str, Make] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauthbearer,
    "GSSAPI": _gssapi,
}


def login_of(configs: ListenerSettings, mechanism: str, config: str) -> Login:
    """Returns how a node logs in at the listener with these configs.

    :param config: the config that names the mechanism
    :raises ConfigError: the mechanism is unknown, has no login module, or one that is not valid
    """
    make = LOGINS.get(mechanism)
    if make is None:
        raise ConfigError(config, mechanism, f"one of these: {', '.join(LOGINS)}")
    return make(mechanism, configs, configured_module(configs, mechanism))


def _user_and_password(mechanism: str, module: LoginModule) -> tuple[str, str]:
    user, password = module.options.get("username"), module.options.get("password")
    if user is None or password is None:
        rule = f"with the username and the password by which this node logs in with {mechanism}"
        raise ConfigError("sasl.jaas.config", None, rule)
    return user, password
