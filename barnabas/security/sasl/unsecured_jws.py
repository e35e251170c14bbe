"""Validates unsecured tokens, for development: they are not signed, so anybody can create one.

Knows nothing of SASL. The rules are those of Apache Kafka's ``OAuthBearerUnsecuredValidatorCallbackHandler`` and
``OAuthBearerUnsecuredJws``.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from barnabas.errors import CloseConnection
from barnabas.integers import MAX_LONG
from barnabas.security.sasl.oauthbearer import InsufficientScope, InvalidToken, ValidToken

PREFIX: Final = "unsecuredValidator"
_SCOPE = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")
_BASE64_URL = re.compile(r"[A-Za-z0-9_-]*")


class UnsecuredValidator:
    """The validator with the options of one login module.

    :raises ValueError: an option is not valid
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        def option(name: str, default: str) -> str:
            return options.get(PREFIX + name, "").strip() or default

        self._subject_claim = option("PrincipalClaimName", "sub")
        self._scope_claim = option("ScopeClaimName", "scope")
        self._scope = option("RequiredScope", "").split()
        self._skew_ms = int(option("AllowableClockSkewMs", "0"))
        if self._skew_ms < 0:
            raise ValueError(f"Allowable clock skew millis must not be negative: {self._skew_ms}")
        for each in self._scope:
            if not _SCOPE.fullmatch(each):
                raise ValueError(f"Invalid scope value: {each}")

    def validate(self, token: str, now_ms: int) -> ValidToken:
        """Returns the fields of a valid token.

        :raises InvalidToken: the token is not valid
        :raises CloseConnection: the token names no algorithm, as in Apache Kafka
        """
        claims = unsecured_claims(token)
        expires_s = number(claims, "exp")
        if expires_s is None:
            raise InvalidToken("it has no expiry")
        subject = claims.get(self._subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise InvalidToken("its subject is empty or no text")
        issued_s = number(claims, "iat")
        if issued_s is not None and 1000 * issued_s > now_ms + self._skew_ms:
            raise InvalidToken("it was issued in the future")
        if now_ms - self._skew_ms >= 1000 * expires_s:
            raise InvalidToken("it has expired")
        if issued_s is not None and expires_s <= issued_s:
            raise InvalidToken("it expires before it is issued")
        self._check_scope(claims.get(self._scope_claim))
        return ValidToken(subject, round(min(1000 * expires_s, MAX_LONG)))

    def _check_scope(self, scope: object) -> None:
        given = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
        if scope is not None and not isinstance(scope, str | list):
            raise InvalidToken("its scope is neither a text nor a list")
        if not set(self._scope) <= {each.strip() for each in given}:
            raise InsufficientScope(f"[{', '.join(self._scope)}]")


def unsecured_claims(token: str) -> Mapping[str, Any]:
    """Returns the claims of a token that is not signed.

    :raises InvalidToken: the token is malformed, or signed
    :raises CloseConnection: the token names no algorithm
    """
    parts = token.split(".")
    if len(parts) != 3 or ".." in token:
        raise InvalidToken("it does not consist of three parts")
    header, claims = decoded(parts[0]), decoded(parts[1])
    if "alg" not in header:
        raise CloseConnection("an unsecured token without an algorithm")
    if header["alg"] != "none" or parts[2]:
        raise InvalidToken("it is signed")
    return claims


def decoded(part: str) -> dict[str, Any]:
    """Returns the values of a part of a token as Apache Kafka reads them: null becomes the text "null".

    :raises InvalidToken: the part is malformed
    """
    if not _BASE64_URL.fullmatch(part):
        raise InvalidToken("it is not in Base64")
    try:
        values, _ = _JSON.raw_decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode().strip())
    except (binascii.Error, ValueError, RecursionError):
        raise InvalidToken("it is not JSON") from None
    return {name: java_value(value) for name, value in values.items()} if isinstance(values, dict) else {}


def java_value(value: object) -> object:
    """Returns a value as ``OAuthBearerUnsecuredJws.convert`` does: a number, a text, or a list of texts."""
    if isinstance(value, list):
        return [java_text(each) for each in value]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else java_text(value)


def java_text(value: object) -> str:
    """Returns a value of JSON as Jackson's ``asText`` does."""
    if isinstance(value, dict | list):
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def number(claims: Mapping[str, Any], name: str) -> float | None:
    """Returns the claim as a number; None if there is none.

    :raises InvalidToken: the claim is not a number
    """
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise InvalidToken(f"its claim {name} is no number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidToken(f"its claim {name} is too large") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_no_constant)
