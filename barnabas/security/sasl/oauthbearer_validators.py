"""Chooses the rules for the tokens of OAUTHBEARER, by ``sasl.server.callback.handler.class``.

Knows nothing of the rules. As in Apache Kafka, tokens need no signature unless that class is set.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from barnabas.config.validators import ConfigError
from barnabas.security.sasl.oauthbearer import Validator
from barnabas.security.sasl.unsecured_jws import UnsecuredValidator

logger = logging.getLogger(__name__)

HANDLER: Final = "sasl.server.callback.handler.class"
URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
UNSECURED: Final = (
    None,
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
)
SIGNED: Final = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",  # until 4.0
)


class Configs(Protocol):
    """The configs of a listener."""

    listener_name: str

    def __getitem__(self, name: str) -> Any: ...

    def of_mechanism(self, mechanism: str, name: str) -> Any: ...


def validator(configs: Configs, options: Mapping[str, str]) -> Validator:
    """Returns the rules of a listener.

    :param options: of the login module
    :raises ConfigError: a config or an option is not valid, or the keys cannot be read
    """
    handler = configs.of_mechanism("OAUTHBEARER", HANDLER)
    if handler in SIGNED:
        return signed(configs)
    if handler not in UNSECURED:
        raise ConfigError(HANDLER, handler, f"one of {', '.join(filter(None, (*UNSECURED, *SIGNED)))}")
    logger.warning(
        "Listener %s takes OAUTHBEARER tokens that nobody has signed, for development only; %s can be %s",
        configs.listener_name,
        HANDLER,
        SIGNED[0],
    )
    try:
        return UnsecuredValidator(options)
    except ValueError as error:
        raise ConfigError("sasl.jaas.config", None, f"the options of a login module: {error}") from error


def signed(configs: Configs) -> Validator:
    """Returns the rules for tokens that a provider has signed.

    :raises ConfigError: the keys cannot be read
    """
    from barnabas.security.sasl.jwks import JwksError, Times, shared_keys
    from barnabas.security.sasl.signed_jwt import Expected, SignedValidator

    url = configs[URL]
    if not url:
        raise ConfigError(URL, url or "", "set, so that the signatures of tokens can be verified")
    times = Times(
        configs["sasl.oauthbearer.jwks.endpoint.refresh.ms"] / 1000,
        configs["sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"] / 1000,
        configs["sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"] / 1000,
    )
    try:
        keys = shared_keys(url, times)
    except JwksError as error:
        raise ConfigError(URL, url, f"the URL of keys: {error}") from error
    expected = Expected(
        configs["sasl.oauthbearer.expected.audience"],
        configs["sasl.oauthbearer.expected.issuer"],
        configs["sasl.oauthbearer.scope.claim.name"],
        configs["sasl.oauthbearer.sub.claim.name"],
        configs["sasl.oauthbearer.clock.skew.seconds"],
    )
    return SignedValidator(keys, expected)
