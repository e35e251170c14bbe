"""The SCRAM credentials of delegation tokens (``tokenauth=true``, KIP-48).

Knows nothing of where tokens are stored. Follows Apache Kafka's ``DelegationTokenManager.prepareScramCredentials``.
"""

import base64
from collections.abc import Callable
from functools import lru_cache

from barnabas.security.principals import USER, Principal
from barnabas.security.sasl.scram import ScramCredential, TokenCredential, credential_of
from barnabas.security.tokens import Token, hmac_of, is_expired, principal_of

KEPT = 1000
"""The number of cached credentials. They are cached because each takes thousands of hashes."""

SALT_BYTES = 18


class TokenCredentials:
    """Computes the credential of a token when it is first used. Its password is the token's secret in Base64."""

    def __init__(self, secret_key: str, random_bytes: Callable[[int], bytes]) -> None:
        def credential(token_id: str, mechanism: str) -> ScramCredential:
            password = base64.b64encode(hmac_of(token_id, secret_key))
            return credential_of(mechanism, password, random_bytes(SALT_BYTES))

        self._credential = lru_cache(KEPT)(credential)

    def of(self, token: Token | None, mechanism: str, now_ms: int) -> TokenCredential | None:
        """Returns the credential of a token; None if there is no such token, or it has expired."""
        if token is None or is_expired(token, now_ms):
            return None
        credential = self._credential(token.token_id, mechanism)
        owner = Principal(USER, principal_of(token.owner).name)  # for any type, as in DelegationTokenCache.owner
        return TokenCredential(credential, owner, token.expiration_timestamp)
