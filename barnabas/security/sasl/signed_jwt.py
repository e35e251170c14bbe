"""Validates signed tokens with the keys of an OAuth provider.

Knows nothing of SASL, nor of where the keys come from. The rules are those of Apache Kafka's ``BrokerJwtValidator`` and
of jose4j as configured there (KIP-768). Signatures are verified by joserfc.
"""

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import Key
from joserfc.jws import JWSRegistry

from barnabas.security.sasl.oauthbearer import InvalidToken, ValidToken

logger = logging.getLogger(__name__)

ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA", "Ed25519"),
    "oct": ("HS256", "HS384", "HS512"),
}
"""The signature algorithms of each key type. A token that is not signed is refused."""

MAX_TRIED: Final = 8
"""The maximum number of keys that are tried for a token that names no key."""


class _Registry(JWSRegistry):
    """The limits of a token. ``sasl.server.max.receive.size`` limits its size before."""

    max_header_length = 16 * 1024
    max_payload_length = 1024 * 1024
    max_signature_length = 16 * 1024


_REGISTRY = _Registry(algorithms=[each for names in ALGORITHMS.values() for each in names], strict_check_header=False)


class Keys(Protocol):
    """The current keys of the provider."""

    @property
    def current(self) -> Sequence[Key]: ...

    def miss(self) -> None:
        """Notes that a token was signed by an unknown key."""


class Expected(NamedTuple):
    """The claims that a token must have (``sasl.oauthbearer.*``)."""

    audience: Collection[str] = ()
    issuer: str | None = None
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    skew_s: int = 0


class SignedValidator:
    """The rules of one listener."""

    def __init__(self, keys: Keys, expected: Expected) -> None:
        self._keys = keys
        self._expected = expected

    def validate(self, token: str, now_ms: int) -> ValidToken:
        """Returns the fields of a valid token.

        :raises InvalidToken: the signature or a claim is not valid
        """
        try:
            valid = checked(self._verified(token), self._expected, now_ms // 1000)
        except InvalidToken as refusal:
            logger.warning("Could not validate the access token: %s", refusal)
            raise
        return valid

    def _verified(self, token: str) -> Mapping[str, Any]:
        try:
            signed = jws.extract_compact(token.encode(), None, _REGISTRY)
            header = signed.headers()
            for key in candidates(self._keys.current, header):
                if jws.validate_compact(signed, key, registry=_REGISTRY):
                    return claims_of(signed.payload or b"")
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise InvalidToken(f"it is malformed ({type(error).__name__})") from None
        self._keys.miss()
        raise InvalidToken("no key verifies its signature")


def candidates(keys: Sequence[Key], header: Mapping[str, Any]) -> Iterator[Key]:
    """Yields the keys that may have signed a token, as jose4j's ``VerificationJwkSelector`` selects them."""
    algorithm, key_id, tried = header.get("alg"), header.get("kid"), 0
    for key in keys:
        fits = algorithm in ALGORITHMS.get(key.key_type, ()) and key.get("use", "sig") == "sig"
        if fits and key.get("alg", algorithm) == algorithm and (key_id is None or key.kid == key_id):
            tried += 1
            if tried > MAX_TRIED:
                return
            yield key


def claims_of(payload: bytes) -> Mapping[str, Any]:
    """Returns the claims.

    :raises ValueError: the payload is not a JSON object
    """
    claims = json.loads(payload)
    if not isinstance(claims, dict):
        raise ValueError("the claims are no object")
    return claims


def checked(claims: Mapping[str, Any], expected: Expected, now_s: int) -> ValidToken:
    """Checks the claims of a token whose signature is verified.

    :raises InvalidToken: one of them is missing, or not as expected
    """
    expires_s, issued_s, begins_s = (time_of(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_s is None or issued_s is None:
        raise InvalidToken("it does not say when it expires, or when it was issued")
    if now_s - expected.skew_s >= expires_s:
        raise InvalidToken("it has expired")
    if begins_s is not None and now_s + expected.skew_s < begins_s:
        raise InvalidToken("it is not valid yet")
    if expires_s < issued_s or (begins_s is not None and expires_s < begins_s):
        raise InvalidToken("it expires before it begins")
    check_audience(claims.get("aud"), expected.audience)
    if expected.issuer is not None and claims.get("iss") != expected.issuer:
        raise InvalidToken("it has another issuer")
    check_scope(claims.get(expected.scope_claim))
    subject = claims.get(expected.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise InvalidToken(f"its claim {expected.subject_claim} is empty or no text")
    if expires_s < 0 or issued_s < 0:
        raise InvalidToken("one of its times is negative")
    return ValidToken(subject.strip(), expires_s * 1000)


def time_of(claims: Mapping[str, Any], name: str) -> int | None:
    """Returns a time in seconds since 1970; None if the token does not have it.

    :raises InvalidToken: it is not a number
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        raise InvalidToken(f"its claim {name} is no time")
    return int(value)


def check_audience(audience: object, expected: Collection[str]) -> None:
    """Checks the audience of the token. If no audience is expected a token with an audience is refused, as by jose4j.

    :raises InvalidToken: it is for another audience
    """
    if audience is None and not expected:
        return
    given = [audience] if isinstance(audience, str) else audience if isinstance(audience, list) else []
    if not any(each in expected for each in given if isinstance(each, str)):
        raise InvalidToken("it is for another audience")


def check_scope(scope: object) -> None:
    """Checks that no scope is empty or repeated.

    :raises InvalidToken: a scope is empty or repeated
    """
    given = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
    names = [each.strip() if isinstance(each, str) else "" for each in given]
    if not all(names) or len(set(names)) < len(names):
        raise InvalidToken("its scope is empty, or has a name twice")
