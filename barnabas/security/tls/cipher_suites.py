"""Java's names of cipher suites and of TLS versions, and the names of OpenSSL.

Knows nothing of contexts. ``ssl.cipher.suites`` has the names of the IANA registry, as Java has them.
"""

from collections.abc import Iterable

from barnabas.config.validators import InvalidValue

#: TLS 1.3 has suites of its own, which OpenSSL names as Java does.
TLS_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")

# : The versions that ``ssl.enabled.protocols`` may list, oldest first.
VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")

_KEY_EXCHANGES = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "DHE_DSS": "DHE-DSS-",
    "RSA": "",
}
_CIPHERS = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}


def openssl_name(suite: str) -> str:
    """Returns OpenSSL's name of a cipher suite of TLS 1.2 or before.

    :raises InvalidValue: OpenSSL has no such suite

    >>> openssl_name("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
    'ECDHE-RSA-AES256-GCM-SHA384'
    """
    exchange, _, cipher = suite.removeprefix("TLS_").removeprefix("SSL_").partition("_WITH_")
    if exchange not in _KEY_EXCHANGES or cipher not in _CIPHERS:
        raise InvalidValue("ssl.cipher.suites", f"Unsupported CipherSuite: {suite}")
    return _KEY_EXCHANGES[exchange] + _CIPHERS[cipher]


def of_older_versions(suites: Iterable[str]) -> list[str]:
    """Returns OpenSSL's names of those suites that are not of TLS 1.3.

    :raises InvalidValue: OpenSSL has no such suite
    """
    return [openssl_name(suite) for suite in suites if suite not in TLS_1_3]


def offered_versions(enabled: Iterable[str], suites: Iterable[str]) -> list[str]:
    """Returns the offered versions of TLS, oldest first: the enabled ones that have a cipher suite.

    :raises InvalidValue: there is no such version, or none has a suite
    """
    for version in enabled:
        if version not in VERSIONS:
            raise InvalidValue("ssl.enabled.protocols", f"Unsupported protocol: {version}")
    listed = list(suites)
    has_new, has_old = (not listed or any((suite in TLS_1_3) is new for suite in listed) for new in (True, False))
    offered = [each for each in VERSIONS if each in enabled and (has_new if each == "TLSv1.3" else has_old)]
    if not offered:
        text = "no version of ssl.enabled.protocols has one of ssl.cipher.suites"
        raise InvalidValue("ssl.enabled.protocols", f"Invalid TLS settings: {text}")
    return offered
