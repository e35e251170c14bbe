"""Java's own format of key stores, JKS: reads keys and certificates.

Knows nothing of files. The format is that of ``sun.security.provider.JavaKeyStore``, whose source is its only
specification. JCEKS, which begins in the same way, is not supported. The library for JKS, pyjks, has had no release
since 2020.
"""

import hashlib
import hmac
import struct
from typing import NamedTuple

MAGIC = b"\xfe\xed\xfe\xed"
_PRIVATE_KEY, _CERTIFICATE = 1, 2
_WHITENER = b"Mighty Aphrodite"
_PROTECTED_BY_SUN = bytes.fromhex("060a2b060104012a02110101")
"""The DER encoding of 1.3.6.1.4.1.42.2.17.1.1, the algorithm that protects keys in a JKS."""
_DIGEST_SIZE = 20


class JksError(ValueError):
    """The store cannot be read. The text contains neither a password nor a key."""


class JksEntry(NamedTuple):
    """An entry of a store: a trusted certificate, or a key with its chain."""

    alias: str
    chain: list[bytes]  #: certificates in DER, the entry's own first
    protected_key: bytes | None = None  #: None: a trusted certificate


def read_jks(store: bytes, password: str | None) -> list[JksEntry]:
    """Returns the entries of a store. Without a password its integrity is not checked, as in Java.

    :raises JksError: it is not a JKS, or the password is wrong
    """
    body, digest = store[:-_DIGEST_SIZE], store[-_DIGEST_SIZE:]
    if password is not None:
        expected = hashlib.sha1(_utf16(password) + _WHITENER + body).digest()
        if not hmac.compare_digest(expected, digest):
            raise JksError("Keystore was tampered with, or password was incorrect")
    try:
        return _Reader(body).entries()
    except (struct.error, UnicodeDecodeError) as error:
        raise JksError("Invalid keystore format") from error


def recover_key(protected: bytes, password: str) -> bytes:
    """Returns the private key, as PKCS #8 in DER.

    The key is XORed with a stream of digests of the password (``KeyProtector``).

    :raises JksError: the password is wrong, or the key is protected in another way
    """
    at = protected.find(_PROTECTED_BY_SUN, 0, 64)
    if at < 0:
        raise JksError("Private key is protected by an algorithm that is not that of JKS")
    # EncryptedPrivateKeyInfo: after the algorithm, with its NULL, an OCTET STRING of salt, key and digest.
    content = _octets(protected, at + len(_PROTECTED_BY_SUN) + 2)
    salt, covered, digest = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:-_DIGEST_SIZE], content[-_DIGEST_SIZE:]
    secret, block, stream = _utf16(password), salt, bytearray()
    while len(stream) < len(covered):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(left ^ right for left, right in zip(covered, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), digest):
        raise JksError("Cannot recover key")
    return key


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


def _octets(encoded: bytes, at: int) -> bytes:
    if encoded[at : at + 1] != b"\x04":
        raise JksError("Invalid keystore format")
    length, at = encoded[at + 1], at + 2
    if length & 0x80:
        octets = length & 0x7F
        length, at = int.from_bytes(encoded[at : at + octets], "big"), at + octets
    if length < 2 * _DIGEST_SIZE or at + length > len(encoded):
        raise JksError("Invalid keystore format")
    return encoded[at : at + length]


class _Reader:
    """Reads big-endian numbers and counted bytes, as Java's ``DataInputStream``."""

    def __init__(self, store: bytes) -> None:
        self._store = store
        self._at = 0

    def entries(self) -> list[JksEntry]:
        if self._take(4) != MAGIC:
            raise JksError("Invalid keystore format")
        version = self._int()
        if version not in (1, 2):
            raise JksError("Invalid keystore format")
        return [self._entry(version) for _ in range(self._int())]

    def _entry(self, version: int) -> JksEntry:
        tag = self._int()
        alias = self._text()
        self._take(8)  # the creation time
        if tag == _CERTIFICATE:
            return JksEntry(alias, [self._certificate(version)])
        if tag != _PRIVATE_KEY:
            raise JksError("Unrecognized keystore entry")
        key = self._take(self._int())
        return JksEntry(alias, [self._certificate(version) for _ in range(self._int())], key)

    def _certificate(self, version: int) -> bytes:
        if version == 2:
            self._text()  # X.509
        return self._take(self._int())

    def _int(self) -> int:
        return int(struct.unpack(">I", self._take(4))[0])

    def _text(self) -> str:
        return self._take(struct.unpack(">H", self._take(2))[0]).decode()

    def _take(self, size: int) -> bytes:
        taken = self._store[self._at : self._at + size]
        if len(taken) < size:
            raise JksError("Invalid keystore format")
        self._at += size
        return taken
