"""The TLS context of a listener, and its replacement while the broker runs.

Knows nothing of connections. The checks of a replacement are those of Kafka's ``SslFactory`` and ``CertificateEntries``
(KIP-226): the new stores must be compatible with the former ones.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from barnabas.config.definitions import BROKER
from barnabas.config.settings import Settings
from barnabas.config.validators import ConfigError, InvalidValue
from barnabas.security.principals import ANONYMOUS, USER, Principal
from barnabas.security.tls.cipher_suites import TLS_1_3, VERSIONS, of_older_versions, offered_versions
from barnabas.security.tls.distinguished_names import rfc2253
from barnabas.security.tls.principal_mapping import PrincipalMapping
from barnabas.security.tls.stores import InvalidStore, KeyEntry, ReadFile, load_key_store, load_trust_store

_NUMBERS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_WITHOUT = {
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
}
_FAILED = "Validation of dynamic config update of SSLFactory failed:"
_UNTRUSTED = (
    "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created with those "
    "settings."
)
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Engine:
    """The TLS context of a listener. It is immutable; :meth:`exchanged` returns another one.

    :param configs: the listener's configs
    :param read: returns the content of a file
    :param is_inter_broker: whether brokers connect to the listener with its own certificate, which its own trust store
        must then trust
    :raises ConfigError: the configs are not valid for TLS
    """

    def __init__(self, configs: Settings, read: ReadFile, *, is_inter_broker: bool = False) -> None:
        self._configs, self._read = configs, read
        self._is_inter_broker = is_inter_broker
        self.keys = load_key_store(configs, read)
        self.trusted = load_trust_store(configs, read)
        self.mapping = PrincipalMapping(configs["ssl.principal.mapping.rules"])
        self.context = _new_context(configs, self.keys, self.trusted)
        if is_inter_broker and self.keys is not None and self.trusted is not None:
            try:
                _check_handshake(self, self)
            except ssl.SSLError as error:
                raise _refused(f"{_UNTRUSTED} {error.reason}") from None

    def principal_of(self, certificate: bytes | None) -> Principal:
        """Returns the principal of a client with this certificate in DER; None for a client without a certificate.

        :raises NoMatchingRule: no rule of ``ssl.principal.mapping.rules`` matches its name
        """
        if certificate is None:
            return ANONYMOUS
        name = rfc2253(x509.load_der_x509_certificate(certificate).subject.public_bytes())
        return Principal(USER, self.mapping.name_of(name))

    def exchanged(self, configs: Settings) -> "Engine":
        """Returns the engine with changed stores, which may replace this one; the same engine if they have not changed.

        Only the configs of the stores are applied: as in Kafka, others take effect at the next start.

        :raises ConfigError: the stores do not load, or are not compatible with these
        """
        try:
            then = Engine(_Exchanged(self._configs, configs), self._read)
            if then._same_stores(self):
                return self
            self._check_successor(then)
        except InvalidStore as error:
            raise _refused(f"{_FAILED} org.apache.kafka.common.errors.InvalidConfigurationException: {error}") from None
        except ssl.SSLError as error:
            text = f"javax.net.ssl.SSLHandshakeException: {getattr(error, 'verify_message', None) or error.reason}"
            raise _refused(f"{_FAILED} {text}") from None
        except ConfigError as error:
            raise _refused(f"{_FAILED} org.apache.kafka.common.config.ConfigException: {error}") from None
        then._is_inter_broker = self._is_inter_broker
        return then

    def has_other_configs(self, configs: Settings) -> bool:
        """Returns whether the configs of the stores differ, without comparing the files."""
        return any(self._configs[name] != configs[name] for name in BROKER if is_of_stores(name))

    def _same_stores(self, other: "Engine") -> bool:
        own, others = ([entry.pem() for entry in engine.keys or ()] for engine in (self, other))
        return own == others and self.trusted == other.trusted

    def _check_successor(self, then: "Engine") -> None:
        if self.keys is None and then.keys is not None:
            raise _refused("Cannot add SSL keystore to an existing listener for which no keystore was configured.")
        if self.keys is not None and then.keys is None:
            text = "Cannot remove the SSL keystore from an existing listener for which a keystore was configured."
            raise _refused(text)
        if self.keys is not None and then.keys is not None:
            _check_compatible(
                self.keys,
                then.keys,
                may_change_names=self._configs["ssl.allow.dn.changes"],
                may_change_alternatives=self._configs["ssl.allow.san.changes"],
            )
        if self.trusted is None and then.trusted is not None:
            raise _refused("Cannot add SSL truststore to an existing listener for which no truststore was configured.")
        if self._is_inter_broker and (self.keys or self.trusted):
            _check_handshake(self, then)
            _check_handshake(then, self)


class _Exchanged:
    """The configs of a listener with changed configs of the stores."""

    def __init__(self, first: Settings, now: Settings) -> None:
        self._first: Settings = first._first if isinstance(first, _Exchanged) else first
        self._now = now

    def __getitem__(self, name: str) -> Any:
        return (self._now if is_of_stores(name) else self._first)[name]


def is_of_stores(name: str) -> bool:
    """Returns whether a config can be changed while the broker runs (``SslConfigs.RECONFIGURABLE_CONFIGS``)."""
    return name.startswith(("ssl.keystore.", "ssl.truststore.")) or name == "ssl.key.password"


def _refused(text: str) -> ConfigError:
    return InvalidValue("ssl", text)


def _new_context(
    configs: Settings, keys: list[KeyEntry] | None, trusted: list[x509.Certificate] | None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    limit_versions(context, configs)
    add_keys(context, keys)
    context.verify_mode = _CLIENT_AUTH[configs["ssl.client.auth"]]
    if trusted is None:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    else:
        add_trusted(context, trusted)
    return context


def limit_versions(context: ssl.SSLContext, configs: Settings) -> None:
    """Limits a context to ``ssl.enabled.protocols`` and ``ssl.cipher.suites``."""
    suites = configs["ssl.cipher.suites"]
    versions = offered_versions(configs["ssl.enabled.protocols"], suites)
    context.minimum_version, context.maximum_version = _NUMBERS[versions[0]], _NUMBERS[versions[-1]]
    for version in VERSIONS[VERSIONS.index(versions[0]) + 1 : VERSIONS.index(versions[-1])]:
        if version not in versions:
            context.options |= _WITHOUT[version]
    older = of_older_versions(suites)
    if older or versions[0] in VERSIONS[:2]:
        # OpenSSL 3 has suites for TLS 1.0 and 1.1 at its security level 0 only.
        level = ":@SECLEVEL=0" if versions[0] in VERSIONS[:2] else ""
        context.set_ciphers((":".join(older) or "DEFAULT") + level)


def add_keys(context: ssl.SSLContext, keys: list[KeyEntry] | None) -> None:
    """Adds the keys and certificates of a key store to a context.

    :raises ConfigError: OpenSSL refuses them
    """
    for entry in keys or ():
        with private_file(entry.pem()) as path:
            try:
                context.load_cert_chain(path)
            except ssl.SSLError as error:
                raise _refused(f"The key and the certificate of {entry.alias} are not usable: {error.reason}") from None


def add_trusted(context: ssl.SSLContext, trusted: list[x509.Certificate]) -> None:
    """Adds the certificates of a trust store to a context. As in Java, they may be end-entity certificates."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=b"".join(each.public_bytes(Encoding.DER) for each in trusted))


def weaker_than_configured(configs: Settings) -> str | None:
    """Returns which part of ``ssl.cipher.suites`` cannot be enforced, as a sentence for the log."""
    listed = [suite for suite in configs["ssl.cipher.suites"] if suite in TLS_1_3]
    if listed and len(listed) < len(TLS_1_3) and "TLSv1.3" in configs["ssl.enabled.protocols"]:
        return f"Python cannot choose among the cipher suites of TLS 1.3: all of {', '.join(TLS_1_3)} are offered"
    return None


@contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """Yields the path of a file that no other user can read, since OpenSSL reads keys from a path only.

    The file is in memory if the system supports that. Otherwise it is in a directory that only this user can access.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with os.fdopen(os.memfd_create("key", os.MFD_CLOEXEC), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory() as directory, tempfile.NamedTemporaryFile(dir=directory) as file:
        file.write(content)
        file.flush()
        yield file.name


# ------------------------------------------------------------ checks of an exchange


def _check_compatible(
    now: list[KeyEntry], then: list[KeyEntry], *, may_change_names: bool, may_change_alternatives: bool
) -> None:
    if len(now) != len(then):
        raise _refused(
            f"Keystore entries do not match, existing store contains {len(now)} entries, "
            f"new store contains {len(then)} entries"
        )
    for old, new in zip(now, then, strict=True):
        if not may_change_names and old.chain[0].subject != new.chain[0].subject:
            raise _refused(
                "Keystore DistinguishedName does not match:  "
                f"existing={{alias={old.alias}, DN={old.distinguished_name}}}, "
                f"new={{alias={new.alias}, DN={new.distinguished_name}}}"
            )
        if not may_change_alternatives and not set(old.alternative_names) <= set(new.alternative_names):
            raise _refused(
                "Keystore SubjectAltNames do not match:  "
                f"existing={{alias={old.alias}, SAN={old.alternative_names}}}, "
                f"new={{alias={new.alias}, SAN={new.alternative_names}}}"
            )


def _check_handshake(of_server: Engine, of_client: Engine) -> None:
    """Checks that a client with one engine's stores can connect to a server with the other's.

    :raises ssl.SSLError: it cannot
    """
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    if of_client.trusted is not None:
        add_trusted(client_context, of_client.trusted)
    else:
        client_context.load_default_certs()
    add_keys(client_context, of_client.keys)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = of_server.context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server)
    # A few rounds are enough: each side needs at most two.
    done = [False, False]
    for _ in range(8):
        for index, side in enumerate((client, server)):
            if not done[index]:
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()
                    done[index] = True
