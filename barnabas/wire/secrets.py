"""Defines which fields of requests and responses are secret: SASL tokens, credentials, HMACs, passwords in configs.

Knows nothing of where fields are shown. Apache Kafka's ``RequestChannel.Request.loggableRequest`` hides the same
configs in its request log.
"""

from typing import Any, Final

from barnabas.wire.schema import Struct

SECRETS: Final = frozenset(
    {
        "SaslAuthenticateRequest.auth_bytes",
        "SaslAuthenticateResponse.auth_bytes",
        "AlterUserScramCredentialsRequest.ScramCredentialUpsertion.salt",
        "AlterUserScramCredentialsRequest.ScramCredentialUpsertion.salted_password",
        "CreateDelegationTokenResponse.hmac",
        "DescribeDelegationTokenResponse.DescribedDelegationToken.hmac",
        "RenewDelegationTokenRequest.hmac",
        "ExpireDelegationTokenRequest.hmac",
        "EnvelopeRequest.request_data",
        "EnvelopeResponse.response_data",
    }
)

CONFIG_VALUES: Final = frozenset(
    {
        "AlterConfigsRequest.AlterConfigsResource.AlterableConfig.value",
        "IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig.value",
    }
)


def is_secret(structure: Struct, name: str) -> bool:
    """Returns whether a field of the structure is a secret.

    >>> from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
    >>> is_secret(SaslAuthenticateRequest(auth_bytes=b"xyzzy"), "auth_bytes")
    True
    """
    path = f"{type(structure).__qualname__}.{name}"
    return path in SECRETS or (path in CONFIG_VALUES and _is_sensitive(structure))


def _is_sensitive(config: Any) -> bool:
    """Returns whether a config is a password, or unknown."""
    from barnabas.config.definitions import TOPIC, of_client_metrics, of_groups
    from barnabas.config.listener_configs import declaration_of

    declaration = declaration_of(config.name)
    if declaration is not None:
        return declaration.sensitive
    return not any(config.name in table for table in (TOPIC, of_groups(), of_client_metrics()))
