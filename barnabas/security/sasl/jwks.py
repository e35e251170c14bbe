"""The keys of an OAuth provider (JWKS), from a file or an https URL. A thread reads them again periodically.

Knows nothing of tokens. Follows Apache Kafka's ``RefreshingHttpsJwks`` and ``JwksFileVerificationKeyResolver``
(KIP-768).
"""

import json
import logging
import ssl
import threading
import time
import urllib.parse
import urllib.request
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 1024 * 1024
TIMEOUT_S: Final = 10
MISS_INTERVAL_S: Final = 60
"""The minimum interval between two refreshes for unknown keys (``MISSING_KEY_ID_CACHE_IN_FLIGHT_MS``)."""


FILE_REFRESH_S: Final = 10
"""The maximum interval between two reads of a file. Apache Kafka checks its modification time for each token."""


class JwksError(ValueError):
    """The keys cannot be read."""


class Times(NamedTuple):
    """``sasl.oauthbearer.jwks.endpoint.*`` in seconds."""

    refresh_s: float = 3600
    retry_s: float = 0.1
    longest_retry_s: float = 10


def keys_at(url: str) -> Sequence[Key]:
    """Reads the keys.

    :raises JwksError: they cannot be read, or the content is not a set of keys
    """
    try:
        loaded = json.loads(_read(url))
        return KeySet.import_key_set(loaded).keys
    except (OSError, JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise JwksError(f"the keys at {url} cannot be read: {type(error).__name__}: {error}") from None


def _read(url: str) -> bytes:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return Path(urllib.request.url2pathname(parts.path)).read_bytes()
    if parts.scheme not in ("https", "http"):
        raise ValueError("the URL is neither file: nor https:")
    # of its own each time: from Python 3.13 on, urllib keeps the first one, with the authorities of then
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    with urllib.request.urlopen(url, timeout=TIMEOUT_S, context=tls) as answer:
        content: bytes = answer.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError("there are more than a megabyte of keys")
    return content


class Jwks:
    """The keys at a URL. A thread reads them again while this object is referenced.

    :param read: returns the keys, or raises :class:`JwksError`; called once by the constructor, and later in the thread
    """

    def __init__(
        self,
        url: str,
        times: Times,
        read: Callable[[str], Sequence[Key]] = keys_at,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self.current = read(url)
        self._read = read
        self._times = times
        self._monotonic = monotonic
        self._missed_at = -float(MISS_INTERVAL_S)
        wake = self._wake = threading.Event()
        self._failures = 0
        thread = threading.Thread(target=_refresh, args=(weakref.ref(self), wake), name=f"jwks of {url}", daemon=True)
        weakref.finalize(self, wake.set)
        thread.start()

    def miss(self) -> None:
        """Requests an early refresh, since a token was signed by an unknown key."""
        now = self._monotonic()
        if now - self._missed_at >= MISS_INTERVAL_S:
            self._missed_at = now
            logger.info("No key of %s has verified a token; refreshing the keys", self.url)
            self._wake.set()

    @property
    def pause_s(self) -> float:
        """The time until the next refresh."""
        if not self._failures:
            return self._times.refresh_s
        return min(self._times.retry_s * float(1 << min(self._failures - 1, 30)), self._times.longest_retry_s)

    def refresh(self) -> None:
        """Reads the keys again. If that fails the current ones are kept."""
        try:
            self.current = self._read(self.url)
            self._failures = 0
        except JwksError as error:
            self._failures += 1
            logger.warning("Keeping the current keys: %s", error)


def _refresh(ref: "weakref.ref[Jwks]", wake: threading.Event) -> None:
    keys = ref()
    while keys is not None:
        pause_s = keys.pause_s
        del keys
        wake.wait(pause_s)
        wake.clear()
        keys = ref()
        if keys is not None:
            keys.refresh()


_SHARED: "weakref.WeakValueDictionary[tuple[Any, ...], Jwks]" = weakref.WeakValueDictionary()


def shared_keys(url: str, times: Times) -> Jwks:
    """Returns the keys at the URL, which all listeners share.

    :raises JwksError: they cannot be read
    """
    if url.startswith("file:"):
        times = times._replace(refresh_s=min(times.refresh_s, FILE_REFRESH_S))
    key = (url, times)
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = Jwks(url, times)
    return found
