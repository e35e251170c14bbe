"""Tokens for OAUTHBEARER: unsecured ones, those in a file, and those that a token endpoint issues.

Knows nothing of brokers. Follows Apache Kafka's ``OAuthBearerUnsecuredLoginCallbackHandler``, for development, and
``OAuthBearerLoginCallbackHandler`` with the grant ``client_credentials`` (KIP-768).
"""

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.security.login.login import LoginFailed

UNSECURED = "unsecuredLogin"
LIFETIME_S = 3600
REUSED_FOR = 0.8
"""The part of a token's lifetime after which a new one is fetched (``sasl.login.refresh.window.factor``)."""

Clock = Callable[[], float]
Get = Callable[[str], str | None]
"""Returns the value of a property."""


class Token(NamedTuple):
    """A token, and the time until which it is used, in seconds since 1970."""

    text: str
    until: float

    def __repr__(self) -> str:
        return f"Token(until={self.until})"


class TokenSource:
    """Provides the token for each login, and fetches a new one when most of its lifetime has passed."""

    def __init__(self, fetch: Callable[[], Token], extensions: Mapping[str, str], clock: Clock = time.time) -> None:
        self._fetch, self._clock = fetch, clock
        self.extensions = dict(extensions)  #: the SASL extensions that are sent with the token
        self._token: Token | None = None

    def token(self) -> str:
        """Returns the token.

        :raises LoginFailed: no token can be fetched
        """
        if self._token is None or self._clock() >= self._token.until:
            self._token = self._fetch()
        return self._token.text


def token_source(
    get: Get, options: Mapping[str, str], context: Callable[[], ssl.SSLContext], clock: Clock = time.time
) -> TokenSource:
    """Returns the source of tokens for some properties and the options of a login module.

    :param context: returns the TLS context for token endpoints with https
    """
    url = (get("sasl.oauthbearer.token.endpoint.url") or "").strip()
    prefix = "extension_" if url else f"{UNSECURED}Extension_"
    extensions = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
    if not url:
        return TokenSource(lambda: unsecured_token(options, clock()), extensions, clock)
    if url.startswith("file:"):
        path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
        return TokenSource(lambda: Token(_read(path), 0), extensions, clock)
    return TokenSource(lambda: _issued_token(url, get, options, context, clock), extensions, clock)


def unsecured_token(options: Mapping[str, str], now: float) -> Token:
    """Returns a token without a signature, with the claims in the options ``unsecuredLoginStringClaim_*``."""
    now = int(now * 1000) / 1000  # rounded down: no time in the future
    lifetime = float(options.get(f"{UNSECURED}LifetimeSeconds", LIFETIME_S))
    claims: dict[str, Any] = {"iat": now, "exp": now + lifetime}
    for name, value in options.items():
        for kind, convert in _CLAIMS.items():
            prefix = f"{UNSECURED}{kind}Claim_"
            if name.startswith(prefix):
                claims[name.removeprefix(prefix)] = convert(value)
    return Token(f"{_base64({'alg': 'none'})}.{_base64(claims)}.", now + lifetime * REUSED_FOR)


def _list(value: str) -> list[str]:
    """Returns the items after the first character, which separates them: ``|a|b``."""
    return value[1:].split(value[0]) if value else []


_CLAIMS: dict[str, Callable[[str], Any]] = {"String": str, "Number": float, "List": _list}


def _base64(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise LoginFailed(f"The file with the token cannot be read: {error}") from None


def _issued_token(
    url: str, get: Get, options: Mapping[str, str], context: Callable[[], ssl.SSLContext], clock: Clock
) -> Token:
    """Fetches a token by client credentials.

    :raises LoginFailed: the endpoint cannot be reached, or does not return a token
    """

    def given(name: str, option: str) -> str:
        return get(name) or options.get(option, "")

    scope = given("sasl.oauthbearer.scope", "scope")
    form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    client = given("sasl.oauthbearer.client.credentials.client.id", "clientId") + ":"
    secret = given("sasl.oauthbearer.client.credentials.client.secret", "clientSecret")
    request = urllib.request.Request(
        url,
        urllib.parse.urlencode(form).encode(),
        {
            "Authorization": "Basic " + base64.b64encode((client + secret).encode()).decode(),
            "Accept": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(
            request, timeout=10, context=context() if url.startswith("https:") else None
        ) as response:
            answer = json.loads(response.read(1 << 20))
        text, lifetime = str(answer["access_token"]), float(answer.get("expires_in", 0))
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else type(error).__name__
        raise LoginFailed(f"The token endpoint {url} has not given a token: {reason}") from None
    return Token(text, clock() + lifetime * REUSED_FOR)
