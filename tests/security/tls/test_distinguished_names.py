"""Names as Java's ``X500Principal.getName`` writes them: each pair is what Java has made of these bytes."""

from base64 import b64decode

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from barnabas.security.tls.distinguished_names import rfc2253

OF_JAVA = [
    (
        "MIGKMREwDwYKCZImiZPyLGQBARMBdTERMA8GCgmSJomT8ixkARkWAWQxCzAJBgNVBAkTAnN0MQswCQYDVQQGEwJERTEKMAgGA1UECBMBczEKMAgG"
        "A1UEBxMBbDEMMAoGA1UEChMDcSxyMRQwCAYDVQQLEwF4MAgGA1UECxMBeTEMMAoGA1UEAxMDYSBi",
        "CN=a b,OU=x+OU=y,O=q\\,r,L=l,ST=s,C=DE,STREET=st,DC=d,UID=u",
    ),
    ("MCIxCjAIBgNVBAMTAXgxFDASBgkqhkiG9w0BCQEWBWFAYi5j", "1.2.840.113549.1.9.1=#16056140622e63,CN=x"),
    (
        "MEgxCjAIBgNVBAMTAWMxCjAIBgNVBC4TAXExCjAIBgNVBCoTAWcxCjAIBgNVBAUTATUxCjAIBgNVBAQTAXMxCjAIBgNVBAwTAXQ=",
        "2.5.4.12=#130174,2.5.4.4=#130173,2.5.4.5=#130135,2.5.4.42=#130167,2.5.4.46=#130171,CN=c",
    ),
    ("MBQxEjAQBgNVBAMMCcOkw7bDvOKCrA==", "CN=äöü€"),
    ("MA4xDDAKBgNVBAMMA2EKYg==", "CN=a\nb"),
    ("MAsxCTAHBgNVBAMTAA==", "CN="),
    ("MAA=", ""),
]


@pytest.mark.parametrize(("encoded", "text"), OF_JAVA)
def test_a_name_is_written_as_by_java(encoded, text):
    assert rfc2253(b64decode(encoded)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" lead trail ", "CN=\\ lead trail\\ "),
        ('a#b=c<d>e;f\\g"h+', 'CN=a\\#b\\=c\\<d\\>e\\;f\\\\g\\"h\\+'),
        ("me@example.org", "CN=me@example.org"),
        ("   ", "CN=\\ \\ \\ "),
    ],
)
def test_what_is_escaped(value, text):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, value)])
    assert rfc2253(name.public_bytes()) == text


@pytest.mark.parametrize("broken", [b"", b"\x30\x05\x31", b"\x30\x02\x31\x09"])
def test_what_is_no_name_is_refused(broken):
    with pytest.raises(ValueError):
        rfc2253(broken)
