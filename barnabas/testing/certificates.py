"""A certificate authority for one test run, and the certificates that it issues.

Knows nothing of brokers. Keys are elliptic-curve keys, which are made in a fraction of a millisecond.
"""

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

VALID_FOR = timedelta(days=1)

SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip
"""What clients in Python 3.13 require of an authority."""


class Pem(NamedTuple):
    """A private key and its certificate, in PEM."""

    key: str
    certificate: str

    def __repr__(self) -> str:
        return f"Pem({self.certificate!r})"


class Authority:
    """Issues certificates that are valid for a day."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Barnabas tests")
        unsigned = self._new(self._name, self._key.public_key())
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        unsigned = unsigned.add_extension(SIGNS_CERTIFICATES, critical=True)
        self.certificate = self._signed(unsigned)  #: in PEM

    def for_hosts(self, *hosts: str) -> Pem:
        """Returns the certificate of a server with these names and addresses."""
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        return self._issued(hosts[0], x509.SubjectAlternativeName(names))

    def for_client(self, name: str) -> Pem:
        """Returns the certificate of a client, whose distinguished name is ``CN=`` and this name."""
        return self._issued(name, None)

    def _issued(self, name: str, names: x509.SubjectAlternativeName | None) -> Pem:
        key = ec.generate_private_key(ec.SECP256R1())
        unsigned = self._new(_name(name), key.public_key())
        if names is not None:
            unsigned = unsigned.add_extension(names, critical=False)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Pem(pem, self._signed(unsigned))

    def _new(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + VALID_FOR)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(authority_key, critical=False)
        )

    def _signed(self, unsigned: x509.CertificateBuilder) -> str:
        return unsigned.sign(self._key, SHA256()).public_bytes(Encoding.PEM).decode()


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
