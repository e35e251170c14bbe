"""Keys and certificates of the tests, created for the run."""

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

PASSWORD = "changeit"


def key_pem(certificate: trustme.LeafCert, password: str | None = None) -> str:
    """Returns the private key as PKCS #8, the only form that Java reads."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    protection = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection).decode()


def chain_pem(certificate: trustme.LeafCert) -> str:
    return "".join(pem.bytes().decode() for pem in certificate.cert_chain_pems)


def inline(
    authority: trustme.CA, certificate: trustme.LeafCert, *, prefix: str = "", password: str | None = None
) -> dict[str, str]:
    """Returns the configs of a key store and a trust store that are not in files."""
    configs = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key_pem(certificate, password),
        "ssl.keystore.certificate.chain": chain_pem(certificate),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.cert_pem.bytes().decode(),
    }
    if password is not None:
        configs["ssl.key.password"] = password
    return {prefix + name: value for name, value in configs.items()}
