"""Bearer tokens of schema registries: a fixed one, one of an OAuth server, or one of Azure's metadata service.

Knows nothing of the registry's requests: another module sends them with the headers made here.
"""

import base64
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

AZURE = "http://169.254.169.254/metadata/identity/oauth2/token"
"""The address of the metadata service in every virtual machine of Azure."""

FRESH = 0.8
"""The share of its lifetime for which a token is used before the next one is requested."""

OAUTH = ("client.id", "client.secret", "scope", "issuer.endpoint.url")

SOURCES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "STATIC_TOKEN": (("token",), ()),
    "OAUTHBEARER": (OAUTH, ()),
    "OAUTHBEARER_AZURE_IMDS": ((), ("issuer.endpoint.url", "issuer.endpoint.query")),
}
"""For each ``bearer.auth.credentials.source`` the settings that it requires, and those that it allows, without their
prefix."""

PREFIX = "bearer.auth."
SOURCE = f"{PREFIX}credentials.source"


def bearer_of(settings: Mapping[str, str]) -> tuple[Mapping[str, str] | None, Mapping[str, str]]:
    """Splits settings into those of the token, without their prefix, and the others.

    :raises ValueError: the settings of the token are incomplete or wrong; the message names one.
    """
    given = {name.removeprefix(PREFIX): value for name, value in settings.items() if name.startswith(PREFIX)}
    rest = {name: value for name, value in settings.items() if not name.startswith(PREFIX)}
    if not given:
        return None, rest
    source = given.get("credentials.source", "")
    if source not in SOURCES:
        raise ValueError(f"{SOURCE} is {source!r}, but must be one of {', '.join(SOURCES)}")
    required, allowed = SOURCES[source]
    missing = [name for name in (*required, "logical.cluster") if name not in given]
    if missing:
        raise ValueError(f"{SOURCE}={source} needs {PREFIX}{missing[0]}")
    known = {*required, *allowed, "credentials.source", "logical.cluster", "identity.pool.id"}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"{SOURCE}={source} does not allow {PREFIX}{unknown[0]}")
    if source == "OAUTHBEARER_AZURE_IMDS" and not {"issuer.endpoint.url", "issuer.endpoint.query"} & given.keys():
        raise ValueError(f"{SOURCE}={source} needs {PREFIX}issuer.endpoint.query or {PREFIX}issuer.endpoint.url")
    return given, rest


class Bearer:
    """The token of one registry, requested again before it expires."""

    def __init__(
        self,
        settings: Mapping[str, str],
        fetch: Callable[[urllib.request.Request], Any],
        *,
        now: Callable[[], float],
    ) -> None:
        """:param fetch: sends a request and returns the JSON of its response."""
        self._settings, self._fetch, self._now = settings, fetch, now
        self._token, self._until = "", float("-inf")

    def headers(self) -> dict[str, str]:
        """Returns the headers that authorize a request; raises what `fetch` does."""
        settings = self._settings
        headers = {"Authorization": f"Bearer {self._current()}", "target-sr-cluster": settings["logical.cluster"]}
        if "identity.pool.id" in settings:
            headers["Confluent-Identity-Pool-Id"] = settings["identity.pool.id"]
        return headers

    def _current(self) -> str:
        if self._settings["credentials.source"] == "STATIC_TOKEN":
            return self._settings["token"]
        if self._now() >= self._until:
            answer = self._fetch(self._request())
            self._token = str(answer["access_token"])
            self._until = self._now() + float(answer.get("expires_in", 0)) * FRESH
        return self._token

    def _request(self) -> urllib.request.Request:
        settings = self._settings
        if settings["credentials.source"] == "OAUTHBEARER":
            form = {"grant_type": "client_credentials", "scope": settings["scope"]}
            secret = f"{settings['client.id']}:{settings['client.secret']}".encode()
            return urllib.request.Request(
                settings["issuer.endpoint.url"],
                urlencode(form).encode(),
                {"Authorization": "Basic " + base64.b64encode(secret).decode(), "Accept": "application/json"},
            )
        parts = urlsplit(settings.get("issuer.endpoint.url", AZURE))
        if "issuer.endpoint.query" in settings:
            parts = parts._replace(query=settings["issuer.endpoint.query"], fragment="")
        return urllib.request.Request(urlunsplit(parts), headers={"Metadata": "true"})
