"""The TLS context of a client, from the key store and the trust store that Java's client properties name.

Knows nothing of connections. Follows Apache Kafka's ``DefaultSslEngineFactory`` for clients.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path

from barnabas.config.validators import ConfigError
from barnabas.security.tls.cipher_suites import of_older_versions
from barnabas.security.tls.engine import add_keys, add_trusted
from barnabas.security.tls.stores import PEM, load_key_store, load_trust_store

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----\s*([A-Za-z0-9+/=\s]+?)\s*-----END \1-----")
_INLINE = ("ssl.truststore.certificates", "ssl.keystore.key", "ssl.keystore.certificate.chain")


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the context for the properties ``ssl.*``. Without a trust store, the system's authorities are trusted.

    :raises ValueError: a store cannot be loaded, or another value is invalid
    """
    configs = _Configs(properties)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    named = configs["ssl.enabled.protocols"] or ",".join(_VERSIONS)
    versions = [_version(each.strip()) for each in named.split(",")]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    suites = of_older_versions([each.strip() for each in (configs["ssl.cipher.suites"] or "").split(",") if each])
    if suites:
        context.set_ciphers(":".join(suites))
    context.check_hostname = bool(properties.get("ssl.endpoint.identification.algorithm", "https").strip())
    try:
        trusted, keys = load_trust_store(configs, _read), load_key_store(configs, _read)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    if trusted is None:
        context.load_default_certs()
    else:
        add_trusted(context, trusted)
    add_keys(context, keys)
    return context


def _version(name: str) -> ssl.TLSVersion:
    if name not in _VERSIONS:
        raise ValueError(f"ssl.enabled.protocols names {name!r}, but must be of {', '.join(_VERSIONS)}")
    return _VERSIONS[name]


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


class _Configs:
    """The properties in the form that the loaders of stores read: None for an unset one, the type of a store by its
    content.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def __getitem__(self, name: str) -> str | None:
        value = self._properties.get(name, "").strip() or None
        if name in ("ssl.truststore.type", "ssl.keystore.type"):
            return (value or self._type_of(name.removesuffix(".type"))).upper()
        return blocks_of(value, name) if value and name in _INLINE else value

    def _type_of(self, store: str) -> str:
        """Returns PEM or JKS, which stands for PKCS12 too. Java would need the type for PEM."""
        location = self[f"{store}.location"]
        if location is None:
            return PEM
        try:
            return PEM if b"-----BEGIN " in _read(location) else "JKS"
        except OSError:
            return PEM  # the loader reports why it cannot be read


def blocks_of(text: str, source: str) -> str:
    """Returns the PEM blocks in a text, with the line breaks that properties may have lost.

    :param source: the name of the text, for the error
    :raises ValueError: there are none
    """
    found = []
    for kind, body in _BLOCK.findall(text):
        letters = re.sub(r"\s", "", body)
        lines = [letters[start : start + 64] for start in range(0, len(letters), 64)]
        found.append("\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""]))
    if not found:
        raise ValueError(f"{source} has no PEM block")
    return "".join(found)
