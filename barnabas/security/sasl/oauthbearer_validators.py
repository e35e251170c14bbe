"""Selects the validator of OAUTHBEARER tokens, by ``sasl.server.callback.handler.class``.

Knows nothing of the rules. As in Apache Kafka, tokens need no signature unless that class is set.
"""

import logging
import os
import re
from collections.abc import Mapping
from typing import Final

from barnabas.config.settings import ListenerSettings
from barnabas.config.validators import ConfigError, invalid
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
JWT_VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
JWT_VALIDATORS: Final = tuple(f"{_PACKAGE}.{name}" for name in ("DefaultJwtValidator", "BrokerJwtValidator"))
"""The classes for signed tokens. The default of a broker is the class for unsecured tokens."""

ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The JVM system property with the URLs from which Apache Kafka may read keys."""


def validator(configs: ListenerSettings, options: Mapping[str, str]) -> Validator:
    """Returns the validator of a listener.

    :param options: the options of the login module
    :raises ConfigError: a config or an option is not valid, or the keys cannot be read
    """
    handler = configs.of_mechanism("OAUTHBEARER", HANDLER)
    if handler in SIGNED:
        return signed(configs)
    if handler not in UNSECURED:
        raise ConfigError(HANDLER, handler, f"one of {', '.join(filter(None, (*UNSECURED, *SIGNED)))}")
    logger.warning(
        "Listener %s accepts unsecured OAUTHBEARER tokens, which are not signed and for development only; %s can be %s",
        configs.listener_name,
        HANDLER,
        SIGNED[0],
    )
    try:
        return UnsecuredValidator(options)
    except ValueError as error:
        raise ConfigError("sasl.jaas.config", None, f"the options of a login module: {error}") from error


def allowed_urls(environment: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the URLs that the JVM options in ``KAFKA_OPTS`` allow; None if the property is not set there."""
    found = re.findall(rf"-D{re.escape(ALLOWED_URLS)}=(\S*)", environment.get("KAFKA_OPTS", ""))
    return frozenset(each.strip() for each in found[-1].strip("'\"").split(",")) if found else None


def signed(configs: ListenerSettings, environment: Mapping[str, str] = os.environ) -> Validator:
    """Returns the validator of tokens that a provider has signed.

    :raises ConfigError: the class is unknown, the URL is not allowed, or the keys cannot be read
    """
    from barnabas.security.sasl.jwks import JwksError, Times, shared_keys
    from barnabas.security.sasl.signed_jwt import Expected, SignedValidator

    url = configs[URL]
    if not url:
        raise ConfigError(URL, url or "", "set, so that the signatures of tokens can be verified")
    if configs[JWT_VALIDATOR] not in JWT_VALIDATORS:  # another class might be stricter than the known ones
        raise ConfigError(JWT_VALIDATOR, configs[JWT_VALIDATOR], f"one of {', '.join(JWT_VALIDATORS)}")
    allowed = allowed_urls(environment)
    if allowed is not None and url not in allowed:
        # ConfigurationUtils.throwIfURLIsNotAllowed
        restricted = "The URL cannot be accessed due to restrictions."
        raise invalid(
            URL, url, f"{restricted} Update the system property '{ALLOWED_URLS}' to allow the URL to be accessed."
        )
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
