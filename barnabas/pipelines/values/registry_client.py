"""An HTTP client of schema registries: the settings of confluent-kafka's client, retries, and several URLs.

Knows nothing of schemas: it sends requests and returns the JSON of the responses.
"""

import base64
import http.client
import json
import math
import random
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from barnabas.pipelines.values.registry_tokens import Bearer, bearer_of

ACCEPT = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"

RETRIABLE = (408, 429, 500, 502, 503, 504)
"""HTTP statuses after which the request is sent again."""

NUMBERS: Mapping[str, float | None] = {
    "cache.capacity": 1000,
    "cache.latest.ttl.sec": None,
    "max.retries": 3,
    "retries.wait.ms": 1000,
    "retries.max.wait.ms": 20_000,
    "timeout": 30,
}
"""Numeric settings and their defaults. Without ``cache.latest.ttl.sec`` the newest schema of a subject is not cached;
confluent-kafka caches it for ever, and has no default for ``timeout`` (seconds)."""

TEXTS = (
    "url",
    "basic.auth.user.info",
    "proxy",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)


class Refused(Exception):
    """The registry has responded with an error."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status}, error {code})")
        self.status, self.code = status, code


class Unreachable(Exception):
    """The registry has not responded."""


class Address(NamedTuple):
    """One of the registry's URLs, and the user and password that it contains."""

    url: str
    user_info: str | None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirection as an error, since the credentials are only for the configured host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class RegistryClient:
    """Sends requests to one registry. Safe to use from several threads, and after a fork."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        pause: Callable[[float], object] = time.sleep,
        chance: Callable[[], float] = random.random,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """:raises ValueError: a setting is unknown or wrong; the message names it."""
        bearer, rest = bearer_of(settings)
        unknown = [name for name in rest if name not in NUMBERS and name not in TEXTS]
        if unknown:
            raise ValueError(f"unknown settings {', '.join(unknown)}; known are {', '.join([*TEXTS, *NUMBERS])}")
        self._numbers = {name: _number(rest, name) for name in NUMBERS}
        self._pause, self._chance, self._now = pause, chance, now
        self._addresses = [address_of(url.strip()) for url in rest["url"].split(",")]
        self._basic = _user_info(rest.get("basic.auth.user.info"), self._addresses)
        self._opener = _opener(rest)
        tokens = _opener({})  # the server that issues tokens is not the registry: the settings ssl.* do not apply
        self._token = None if bearer is None else Bearer(bearer, lambda asks: self._open_json(tokens, asks), now=now)
        self._latest: dict[str, tuple[float, Any]] = {}
        self.get_immutable = lru_cache(maxsize=int(self._numbers["cache.capacity"] or 0))(self.get)

    def get(self, path: str) -> Any:
        """Returns the JSON of a GET.

        :raises Refused: the registry has responded with an error.
        :raises Unreachable: no URL of the registry has responded.
        """
        return self._send("GET", path, None)

    def get_latest(self, path: str) -> Any:
        """Returns the JSON of a GET, cached for ``cache.latest.ttl.sec``; raises what `get` does."""
        seconds = self._numbers["cache.latest.ttl.sec"]
        until, answer = self._latest.get(path, (float("-inf"), None))
        if seconds is None or self._now() >= until:
            answer = self.get(path)
            if seconds is not None:
                self._latest[path] = self._now() + seconds, answer
        return answer

    def post(self, path: str, body: Any) -> Any:
        """Returns the JSON of a POST; raises what `get` does."""
        return self._send("POST", path, json.dumps(body).encode())

    def _send(self, method: str, path: str, body: bytes | None) -> Any:
        """Tries each URL in turn, and each several times."""
        for address in self._addresses[:-1]:
            try:
                return self._retried(address, method, path, body)
            except Unreachable:
                continue
            except Refused as error:
                if error.status not in RETRIABLE:
                    raise
        return self._retried(self._addresses[-1], method, path, body)

    def _retried(self, address: Address, method: str, path: str, body: bytes | None) -> Any:
        retries = int(self._numbers["max.retries"] or 0)
        for attempt in range(retries + 1):
            try:
                return self._once(address, method, path, body)
            except (Refused, Unreachable) as error:
                is_final = isinstance(error, Refused) and error.status not in RETRIABLE
                if is_final or attempt == retries or isinstance(error.__cause__, ssl.SSLCertVerificationError):
                    raise
            self._pause(self._wait_ms(attempt) / 1000)
        raise AssertionError("the last attempt returns or raises")

    def _wait_ms(self, attempt: int) -> float:
        """Returns a random time below a limit that doubles with each attempt."""
        first, most = self._numbers["retries.wait.ms"] or 0, self._numbers["retries.max.wait.ms"] or 0
        return self._chance() * min(first * 2.0**attempt, most)

    def _once(self, address: Address, method: str, path: str, body: bytes | None) -> Any:
        headers = {"Accept": ACCEPT}
        if body is not None:
            headers["Content-Type"] = CONTENT_TYPE
        user_info = self._basic or address.user_info
        if user_info is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(user_info.encode()).decode()
        if self._token is not None:
            headers.update(self._authorized())
        request = urllib.request.Request(f"{address.url}/{path}", body, headers, method=method)
        return self._open_json(self._opener, request)

    def _authorized(self) -> dict[str, str]:
        """Returns the headers of the token. An error of the server that issues tokens is not one of the registry."""
        assert self._token is not None
        try:
            return self._token.headers()
        except Refused as error:
            raise Unreachable(f"the server that issues tokens refuses: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise Unreachable("the server that issues tokens did not return access_token and expires_in") from error

    def _open_json(self, opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> Any:
        try:
            with opener.open(request, timeout=self._numbers["timeout"]) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            raise _refused(error) from error
        except urllib.error.URLError as error:
            raise Unreachable(str(error.reason)) from (
                error.reason if isinstance(error.reason, BaseException) else error
            )
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from error


def address_of(url: str) -> Address:
    """Separates a URL from the user and password in it.

    :raises ValueError: it is not an HTTP URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = url.rpartition("@")[2]  # without the user and password
        raise ValueError(f"url is {shown!r}, but must be like http://host:8081")
    user_info, _, host = parts.netloc.rpartition("@")
    whole = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    return Address(whole, unquote(user_info) if user_info else None)


def _number(settings: Mapping[str, str], name: str) -> float | None:
    if name not in settings:
        return NUMBERS[name]
    least = 0.001 if name == "timeout" else 0
    try:
        number = float(settings[name])
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        raise ValueError(f"registry.{name} is {settings[name]!r}, but must be a number >= {least}")
    return number


def _user_info(text: str | None, addresses: list[Address]) -> str | None:
    if text is None:
        return None
    if any(address.user_info for address in addresses):
        raise ValueError("basic.auth.user.info is given, and a user in the URL too: give one of them")
    if ":" not in text:
        raise ValueError("basic.auth.user.info must be user:password")
    return text


def _opener(settings: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """Returns an opener with the settings' proxy and TLS; without a proxy the environment's is used."""
    proxy = settings.get("proxy")
    proxies = urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else None)
    return urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=_tls(settings)), _NoRedirects())


def _tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    authority = settings.get("ssl.ca.location")
    certificate, key = settings.get("ssl.certificate.location"), settings.get("ssl.key.location")
    if certificate is None and (key is not None or "ssl.key.password" in settings):
        raise ValueError("ssl.key.location and ssl.key.password need ssl.certificate.location")
    try:
        if authority is None:
            context = ssl.create_default_context()
        elif Path(authority).is_dir():
            context = ssl.create_default_context(capath=authority)
        else:
            context = ssl.create_default_context(cafile=authority)
        if certificate is not None:
            password = settings.get("ssl.key.password", "")  # with None, OpenSSL asks at the terminal
            context.load_cert_chain(certificate, key, password)
    except OSError as error:
        raise ValueError(f"cannot load the files of the settings ssl.*: {error}") from error
    return context


def _refused(error: urllib.error.HTTPError) -> Refused:
    try:
        with error:
            content = error.read()
    except (OSError, http.client.HTTPException):
        content = b""  # the status is sufficient
    try:
        answer = json.loads(content)
        return Refused(error.code, int(answer["error_code"]), str(answer["message"]))
    except (ValueError, KeyError, TypeError):
        return Refused(error.code, -1, content[:200].decode(errors="replace") or "no message")
