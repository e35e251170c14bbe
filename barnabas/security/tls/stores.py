"""Key stores and trust stores of a listener: PEM (inline or files), PKCS12 and JKS.

Knows nothing of contexts and connections. The checks of the configs and the texts of errors are those of Kafka's
``DefaultSslEngineFactory`` (KIP-651). As in Java, the content of a file decides whether it is PKCS12 or JKS.
"""

import logging
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from barnabas.config.settings import Settings
from barnabas.config.validators import InvalidValue
from barnabas.security.tls.distinguished_names import displayed
from barnabas.security.tls.jks import MAGIC, JksError, read_jks, recover_key

logger = logging.getLogger(__name__)

PEM = "PEM"
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

ReadFile = Callable[[str], bytes]
"""Returns the content of a file. Raises OSError if it cannot."""


Loaded = TypeVar("Loaded")


class KeyEntry(NamedTuple):
    """A private key and its certificates, the key's own first."""

    alias: str
    key: Any
    chain: list[x509.Certificate]

    def __repr__(self) -> str:
        return f"KeyEntry({self.alias!r}, {self.distinguished_name!r})"

    @property
    def distinguished_name(self) -> str:
        return displayed(self.chain[0].subject.public_bytes())

    @property
    def alternative_names(self) -> list[str]:
        """The subject alternative names of the certificate."""
        try:
            names = self.chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return []
        return sorted(f"{type(name).__name__}:{name.value}" for name in names)

    def pem(self) -> bytes:
        """Returns the unencrypted key and the chain in PEM."""
        key: bytes = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + b"".join(each.public_bytes(Encoding.PEM) for each in self.chain)


def load_key_store(configs: Settings, read: ReadFile) -> list[KeyEntry] | None:
    """Returns the entries of the key store; None if none is configured.

    :raises InvalidStore: the configs contradict one another, or the store cannot be loaded
    """
    kind, location = configs["ssl.keystore.type"], configs["ssl.keystore.location"]
    key, chain = configs["ssl.keystore.key"], configs["ssl.keystore.certificate.chain"]
    password, key_password = configs["ssl.keystore.password"], configs["ssl.key.password"]
    if key is not None:
        _require(kind == PEM, f"SSL private key can be specified only for PEM, but key store type is {kind}.")
        _require(chain is not None, "SSL private key is specified, but certificate chain is not specified.")
        _require(location is None, "Both SSL key store location and separate private key are specified.")
        _require(password is None, "SSL key store password cannot be specified with PEM format, only key password may be specified.")  # fmt: skip  # noqa: E501
        return _loaded("key store", None, PEM, lambda: [_pem_entry(key.encode(), chain.encode(), key_password)])
    _require(chain is None, "SSL certificate chain is specified, but private key is not specified")
    if location is None:
        _require(password is None, "SSL key store is not specified, but key store password is specified.")
        return None
    if kind == PEM:
        _require(password is None, "SSL key store password cannot be specified with PEM format, only key password may be specified")  # fmt: skip  # noqa: E501

        def load_pem() -> list[KeyEntry]:
            content = read(location)
            return [_pem_entry(content, content, key_password)]

        return _loaded("key store", location, PEM, load_pem)
    _require(password is not None, "SSL key store is specified, but key store password is not specified.")
    return _loaded(
        "key store", location, kind, lambda: _key_entries(read(location), password, key_password or password)
    )


def load_trust_store(configs: Settings, read: ReadFile) -> list[x509.Certificate] | None:
    """Returns the trusted certificates; None if no trust store is configured.

    :raises InvalidStore: the configs contradict one another, or the store cannot be loaded
    """
    kind, location = configs["ssl.truststore.type"], configs["ssl.truststore.location"]
    inline, password = configs["ssl.truststore.certificates"], configs["ssl.truststore.password"]
    if inline is not None:
        _require(kind == PEM, f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}.")
        _require(location is None, "Both SSL trust store location and separate trust certificates are specified.")
        _require(password is None, "SSL trust store password cannot be specified for PEM format.")
        return _loaded("trust store", None, PEM, lambda: _pem_certificates(inline.encode()))
    if location is None:
        _require(password is None, "SSL trust store is not specified, but trust store password is specified.")
        return None
    if kind == PEM:
        _require(password is None, "SSL trust store password cannot be specified for PEM format.")
        return _loaded("trust store", location, PEM, lambda: _pem_certificates(read(location)))
    return _loaded("trust store", location, kind, lambda: _trusted(read(location), password))


class InvalidStore(InvalidValue):
    """The configs of a store contradict one another, or it cannot be loaded (``InvalidConfigurationException``)."""

    def __init__(self, text: str) -> None:
        super().__init__("ssl", text)


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise InvalidStore(text)


def _loaded(what: str, location: str | None, kind: str, load: Callable[[], Loaded]) -> Loaded:
    try:
        return load()
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except (JksError, _Unusable) as error:
        reason = str(error)
    except (ValueError, TypeError, ArithmeticError, UnsupportedAlgorithm):
        # The library's text might quote the content.
        reason = "it cannot be read, or the password is wrong"
    logger.warning("Cannot load the %s %s: %s", what, location or "in the configs", reason)
    if location is None:
        raise InvalidStore("Invalid PEM keystore configs")
    # Kafka uses this text for trust stores, too.
    raise InvalidStore(
        f"Failed to load PEM SSL keystore {location}"
        if kind == PEM
        else f"Failed to load SSL keystore {location} of type {kind}"
    )


class _Unusable(ValueError):
    """A store lacks a required entry. The text contains no secret."""


# ------------------------------------------------------------ PEM


def _pem_entry(key: bytes, chain: bytes, password: str | None) -> KeyEntry:
    found = _KEY.findall(key)
    if len(found) != 1:
        raise _Unusable(f"Expected one private key, but found {len(found)}")
    whole = _KEY.search(key)
    assert whole is not None
    secret = password.encode() if password is not None and b"ENCRYPTED" in whole[0] else None
    return KeyEntry("kafka", load_pem_private_key(whole[0], secret), _pem_certificates(chain))


def _pem_certificates(content: bytes) -> list[x509.Certificate]:
    certificates = [x509.load_pem_x509_certificate(each) for each in _CERTIFICATE.findall(content)]
    if not certificates:
        raise _Unusable("At least one certificate expected, but none found")
    return certificates


# ------------------------------------------------------------ PKCS12 and JKS


def _key_entries(content: bytes, password: str, key_password: str) -> list[KeyEntry]:
    if content.startswith(MAGIC):
        entries = [
            KeyEntry(
                entry.alias,
                load_der_private_key(recover_key(entry.protected_key, key_password), None),
                [x509.load_der_x509_certificate(each) for each in entry.chain],
            )
            for entry in read_jks(content, password)
            if entry.protected_key is not None
        ]
    else:
        store = pkcs12.load_pkcs12(content, password.encode())
        entries = []
        if store.key is not None and store.cert is not None:
            own = store.cert.certificate
            chain = _chain(own, [each.certificate for each in store.additional_certs])
            entries = [KeyEntry((store.cert.friendly_name or b"").decode(errors="replace"), store.key, chain)]
    if not entries:
        raise _Unusable("there is no private key in it")
    return entries


def _trusted(content: bytes, password: str | None) -> list[x509.Certificate]:
    """Returns the certificates that Java trusts: certificate entries, and the first certificate of each key's chain."""
    if content.startswith(MAGIC):
        return [x509.load_der_x509_certificate(entry.chain[0]) for entry in read_jks(content, password) if entry.chain]
    store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    alone = [each.certificate for each in store.additional_certs]
    if store.cert is None:
        return alone
    own = store.cert.certificate
    chain = _chain(own, alone)
    return [own, *(each for each in alone if each not in chain)]


def _chain(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """Returns the certificate and those above it."""
    chain = [own]
    while True:
        issuer = next((each for each in others if each.subject == chain[-1].issuer and each not in chain), None)
        if issuer is None:
            return chain
        chain.append(issuer)
