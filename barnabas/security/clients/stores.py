"""The TLS context of a client, from the key store and the trust store that Java's client properties name.

Knows nothing of connections. Apache Kafka's ``DefaultSslEngineFactory``, on the side of a client.
"""

import re
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----\s*([A-Za-z0-9+/=\s]+?)\s*-----END \1-----")

Given = Callable[[str], str]
"""Returns the property ``ssl.`` and the name; an empty text where it is not set."""


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the context for the properties ``ssl.*``. Without a trust store, the system's authorities are trusted.

    :raises OSError: a store cannot be read
    :raises ValueError: a store or another value is invalid
    """

    def given(name: str) -> str:
        return properties.get(f"ssl.{name}", "").strip()

    context = ssl.create_default_context(cadata=_trusted(given))
    versions = [_version(each.strip()) for each in (given("enabled.protocols") or "TLSv1.2,TLSv1.3").split(",")]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.check_hostname = bool(properties.get("ssl.endpoint.identification.algorithm", "https").strip())
    _load_key(context, given)
    return context


def _version(name: str) -> ssl.TLSVersion:
    if name not in _VERSIONS:
        raise ValueError(f"ssl.enabled.protocols names {name!r}, but must be of {', '.join(_VERSIONS)}")
    return _VERSIONS[name]


def _trusted(given: Given) -> str | None:
    if given("truststore.certificates"):
        return blocks_of(given("truststore.certificates"), "ssl.truststore.certificates")
    if given("truststore.location"):
        return _read(given, "truststore")
    return None


def _load_key(context: ssl.SSLContext, given: Given) -> None:
    """Loads the client's key and certificates, if it has any.

    Python's ``ssl`` takes a key from a file only. The file is in a directory that others cannot enter, and is removed.
    """
    if given("keystore.key"):
        content = blocks_of(given("keystore.key"), "ssl.keystore.key")
        content += blocks_of(given("keystore.certificate.chain"), "ssl.keystore.certificate.chain")
    elif given("keystore.location"):
        content = _read(given, "keystore")
    else:
        return
    if given("key.location"):  # not of Java's clients, but of librdkafka's: a key beside the file of its certificates
        content += Path(given("key.location")).read_text("utf-8")
    with tempfile.TemporaryDirectory() as private:
        path = Path(private, "client.pem")
        path.write_text(content, "utf-8")
        context.load_cert_chain(path, password=lambda: given("key.password"))  # without it, OpenSSL asks on a terminal


def _read(given: Given, side: str) -> str:
    """Returns a store in PEM."""
    location, kind = given(f"{side}.location"), given(f"{side}.type").upper()
    content = Path(location).read_bytes()
    if kind == "PEM" or (not kind and b"-----BEGIN " in content):
        return blocks_of(content.decode("utf-8", "replace"), location)
    raise ValueError(f"{location} is not in PEM")


def blocks_of(text: str, source: str) -> str:
    """Returns the PEM blocks in a text, each with its line breaks, which properties may have lost.

    :param source: what the text is, for the error
    :raises ValueError: there are none
    """
    found = [
        f"-----BEGIN {kind}-----\n{re.sub(r'[^A-Za-z0-9+/=]', '', body)}\n-----END {kind}-----\n"
        for kind, body in _BLOCK.findall(text)
    ]
    if not found:
        raise ValueError(f"{source} has no PEM block")
    return "".join(found)
