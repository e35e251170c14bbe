"""Signed tokens, held against the rules of Apache Kafka's BrokerJwtValidator; and the keys that verify them."""

import base64
import contextlib
import gc
import hmac
import http.server
import itertools
import json
import ssl
import threading

import pytest
import trustme
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from joserfc.jws import JWSRegistry

from barnabas.config import BrokerConfig
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError
from barnabas.security.sasl.jwks import MISS_INTERVAL_S, Jwks, JwksError, Times, keys_at, shared_keys
from barnabas.security.sasl.oauthbearer import InvalidToken, ValidToken
from barnabas.security.sasl.oauthbearer_validators import validator
from barnabas.security.sasl.signed_jwt import Expected, SignedValidator

NOW_S = 1_700_000_000
RSA = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
STRANGER = RSAKey.generate_key(2048, {"kid": "stranger"})
CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60, "scope": "read"}


class Keys:
    """Keys that are told of tokens that none of them verifies."""

    def __init__(self, *keys):
        self.current, self.misses = keys, 0

    def miss(self):
        self.misses += 1


def signed(key=RSA, algorithm="RS256", header=None, **changes):
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    given = {"alg": algorithm, "kid": key.kid, "nonce": "a header of one provider"} if header is None else header
    return jwt.encode(given, claims, key, registry=JWSRegistry(algorithms=[algorithm], strict_check_header=False))


def part(values):
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


def validate(token, *, keys=None, **expected):
    return SignedValidator(keys or Keys(RSA, EC), Expected(**expected)).validate(token, NOW_S * 1000)


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (signed(), {}),
        (signed(EC, "ES256"), {}),
        (signed(header={"alg": "RS256"}), {}),
        (signed(aud="kafka"), {"audience": ["other", "kafka"]}),
        (signed(aud=["x", "kafka"]), {"audience": ["kafka"]}),
        (signed(iss="https://issuer"), {"issuer": "https://issuer"}),
        (signed(iss="https://issuer"), {}),
        (signed(scope=["read", "write"]), {}),
        (signed(scope=None), {}),
        (signed(sub=None, name="alice"), {"subject_claim": "name"}),
        (signed(iat=NOW_S + 5), {}),
    ],
    ids=map(str, itertools.count()),  # a signature differs each time
)
def test_valid_tokens(token, expected):
    assert validate(token, **expected) == ValidToken("alice", (NOW_S + 60) * 1000)


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (signed(exp=NOW_S), {}),
        (signed(exp=None), {}),
        (signed(iat=None), {}),
        (signed(iat="now"), {}),
        (signed(nbf=NOW_S + 1), {}),
        (signed(iat=NOW_S + 100), {}),
        (signed(sub=None), {}),
        (signed(sub="  "), {}),
        (signed(sub=7), {}),
        (signed(aud="kafka"), {}),
        (signed(aud="kafka"), {"audience": ["other"]}),
        (signed(), {"audience": ["kafka"]}),
        (signed(), {"issuer": "https://issuer"}),
        (signed(iss="http://issuer"), {"issuer": "https://issuer"}),
        (signed(scope=["read", "read "]), {}),
        (signed(scope=[""]), {}),
        (signed(STRANGER), {}),
        (signed(STRANGER, header={"alg": "RS256"}), {}),
        (signed(STRANGER, header={"alg": "RS256", "kid": "rsa"}), {}),
        (signed() + "x", {}),
        ("a.b.c", {}),
        ("no-token", {}),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.", {}),
        ("." * 1_000_000, {}),
        (f"{'e' * 500_000}.{'e' * 500_000}.e", {}),
    ],
    ids=map(str, itertools.count()),  # a signature differs each time
)
def test_invalid_tokens(token, expected):
    with pytest.raises(InvalidToken):
        validate(token, **expected)


def test_the_clock_skew_counts_on_both_sides():
    token = signed(exp=NOW_S - 5, iat=NOW_S - 20, nbf=NOW_S - 10)
    assert validate(token, skew_s=6).subject == "alice"
    assert validate(signed(nbf=NOW_S + 5), skew_s=5).subject == "alice"
    with pytest.raises(InvalidToken):
        validate(token, skew_s=5)


def test_a_public_key_is_no_password():
    """A token signed by HMAC with the text of a public key, which everybody has."""
    parts = [part({"alg": "HS256", "kid": "rsa"}), part(CLAIMS)]
    mac = hmac.digest(RSA.as_pem(private=False), ".".join(parts).encode(), "sha256")
    token = ".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=").decode()])
    with pytest.raises(InvalidToken):
        validate(token)


def test_an_unknown_key_is_reported():
    keys = Keys(RSA)
    with pytest.raises(InvalidToken):
        validate(signed(EC, "ES256"), keys=keys)
    assert keys.misses == 1
    with pytest.raises(InvalidToken):
        validate(signed(exp=NOW_S), keys=keys)
    assert keys.misses == 1


# ---------------------------------------------------------------- keys


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "keys.json"
    write(file, RSA, EC)
    return file


def write(file, *keys):
    file.write_text(json.dumps(KeySet(list(keys)).as_dict(private=False)))


def test_keys_in_a_file(file):
    assert [key.kid for key in keys_at(file.as_uri())] == ["rsa", "ec"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"keys": [{"kty": "RSA"}]}', "[" * 100_000])
def test_a_file_without_keys(file, content):
    file.write_text(content)
    with pytest.raises(JwksError, match=r"the keys at file:.*keys.json cannot be read"):
        keys_at(file.as_uri())


@pytest.mark.parametrize("url", ["file:///no/such/file", "ftp://example.org/keys", "keys.json"])
def test_an_url_without_keys(url):
    with pytest.raises(JwksError):
        keys_at(url)


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers each GET with the same keys, or a megabyte and more."""

    def do_GET(self):
        content = json.dumps(KeySet([RSA]).as_dict(private=False)) if self.path == "/keys" else " " * (1 << 20) + "{}"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def provider(tmp_path, monkeypatch):
    """The address of a provider behind TLS, whose authority this process trusts."""
    authority = trustme.CA()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}"
        server.shutdown()


def test_keys_at_an_https_url(provider, monkeypatch, tmp_path):
    assert [key.kid for key in keys_at(f"{provider}/keys")] == ["rsa"]
    with pytest.raises(JwksError, match="more than a megabyte"):
        keys_at(f"{provider}/more")
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    with pytest.raises(JwksError, match="CERTIFICATE_VERIFY_FAILED"):
        keys_at(f"{provider}/keys")


class Reader:
    """Reads keys, and says when it has."""

    def __init__(self):
        self.answers, self.read = [[RSA]], threading.Semaphore(0)

    def __call__(self, url):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.read.release()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(self):
        assert self.read.acquire(timeout=10)


def test_keys_are_read_again_in_time():
    reader = Reader()
    reader.answers = [[RSA], JwksError("the provider is away"), [EC]]
    keys = Jwks("https://provider", Times(0.01, 0.01, 0.01), reader)
    for _ in range(4):
        reader.wait()
    assert keys.current == [EC]


def test_an_unknown_key_has_them_read_once_a_minute():
    reader, now = Reader(), [0.0]
    keys = Jwks("https://provider", Times(), reader, lambda: now[0])
    reader.wait()
    keys.miss()
    reader.wait()
    keys.miss()
    assert not reader.read.acquire(timeout=0.05)
    now[0] = MISS_INTERVAL_S
    keys.miss()
    reader.wait()


def test_after_failures_the_pauses_grow():
    reader = Reader()
    keys = Jwks("https://provider", Times(3600, 0.1, 1), reader)
    reader.answers = [JwksError("the provider is away")]
    pauses = [keys.pause_s]
    for _ in range(5):
        keys.refresh()
        pauses.append(keys.pause_s)
    assert pauses == [3600, 0.1, 0.2, 0.4, 0.8, 1]
    assert keys.current == [RSA]


def test_listeners_share_keys_and_the_thread_ends_with_the_last_one(file):
    url = file.as_uri()
    keys = shared_keys(url, Times())
    assert shared_keys(url, Times()) is keys
    (thread,) = (each for each in threading.enumerate() if each.name == f"jwks of {url}")
    del keys
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


# ---------------------------------------------------------------- configs

SIGNED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
HANDLER = "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class"
URL = "sasl.oauthbearer.jwks.endpoint.url"


def configured(options=None, **properties):
    config = BrokerConfig.from_properties(properties)
    return validator(ListenerConfigs(config, "SASL"), options or {})


def test_configs_of_signed_tokens(file):
    settings = {HANDLER: SIGNED, URL: file.as_uri(), "sasl.oauthbearer.expected.audience": "kafka"}
    found = configured(**settings, **{"sasl.oauthbearer.expected.issuer": "me"})
    token = signed(aud="kafka", iss="me", exp=NOW_S - 20, iat=NOW_S - 40)
    assert found.validate(token, NOW_S * 1000).subject == "alice"  # 30 seconds of clock skew
    with pytest.raises(InvalidToken):
        found.validate(signed(aud="kafka"), NOW_S * 1000)


def test_without_a_handler_tokens_need_no_signature():
    with pytest.raises(InvalidToken):
        configured().validate(signed(), NOW_S * 1000)


@pytest.mark.parametrize(
    ("properties", "options", "words"),
    [
        ({HANDLER: SIGNED}, {}, "sasl.oauthbearer.jwks.endpoint.url is ''"),
        ({HANDLER: SIGNED, URL: "file:///no/such/file"}, {}, "cannot be read"),
        ({HANDLER: "com.example.Handler"}, {}, "com.example.Handler"),
        ({}, {"unsecuredValidatorAllowableClockSkewMs": "-1"}, "must not be negative"),
    ],
)
def test_configs_that_are_not_valid(properties, options, words):
    with pytest.raises(ConfigError, match=words):
        configured(options, **properties)


VALIDATOR = "sasl.oauthbearer.jwt.validator.class"


def test_a_class_that_validates_in_its_own_way_is_refused(file):
    known = "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator"
    properties = {HANDLER: SIGNED, URL: file.as_uri()}
    assert isinstance(configured(**{**properties, VALIDATOR: known}), SignedValidator)
    for config in (VALIDATOR, f"listener.name.sasl.{VALIDATOR}"):
        with pytest.raises(ConfigError, match=r"validator.class is 'com.example.Mine', but must be one of"):
            configured(**{**properties, config: "com.example.Mine"})


@pytest.mark.parametrize(
    ("options", "allows"),
    [
        ("", True),
        ("-Xmx1g -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://x,{url}", True),
        ("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url} -Da=b", True),
        ("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://x", False),
        ("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=", False),
    ],
)
def test_the_urls_that_kafka_opts_allows(file, monkeypatch, options, allows):
    monkeypatch.setenv("KAFKA_OPTS", options.format(url=file.as_uri()))
    with contextlib.nullcontext() if allows else pytest.raises(ConfigError, match="Update the system property"):
        configured(**{HANDLER: SIGNED, URL: file.as_uri()})
