"""The mechanisms SCRAM-SHA-256 and SCRAM-SHA-512: a proof that the client knows the password, which is not sent.

Knows nothing of where credentials are stored. Follows RFC 5802; the grammar and the rules are those of Apache Kafka's
``ScramMessages`` and ``ScramSaslServer``.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from barnabas.errors import CloseConnection
from barnabas.security.principals import USER, Principal
from barnabas.security.sasl.mechanism import Authenticated, AuthenticationRefused

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash function of each mechanism."""

CODES: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The codes of the mechanisms in requests and records (``ScramMechanism.type``)."""

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
NONCE_BYTES: Final = 18

# Possessive quantifiers prevent backtracking, so that an unauthenticated client's long message takes linear time.
_ALPHA, _VALUE, _PRINTABLE = r"[A-Za-z]++", r"[\x01-\x2B\x2D-\x7F]++", r"[\x21-\x2B\x2D-\x7E]++"
_NAME = r"(?:[\x01-\x2B\x2D-\x3C\x3E-\x7F]++|=2C|=3D)++"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*+(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = f"(?P<extensions>(?:,{_ALPHA}={_VALUE})*)"
_CLIENT_FIRST = re.compile(
    f"n,(?:a=(?P<authorization_id>{_NAME}))?,(?:m={_VALUE},)?"
    f"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_CLIENT_FINAL = re.compile(
    f"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class ScramCredential(NamedTuple):
    """What the broker stores of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


class TokenCredential(NamedTuple):
    """The credential of a delegation token, and the token's owner (KIP-48)."""

    credential: ScramCredential
    owner: Principal
    expires_at_ms: int


class Credentials(Protocol):
    """The credentials of users and delegation tokens."""

    def of_user(self, name: str, mechanism: str) -> ScramCredential | None: ...

    def of_token(self, token_id: str, mechanism: str) -> TokenCredential | None: ...


def keys_of(mechanism: str, salted_password: bytes) -> tuple[bytes, bytes]:
    """Returns the stored key and the server key of a salted password."""
    hash_name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", hash_name)
    return hashlib.new(hash_name, client_key).digest(), hmac.digest(salted_password, b"Server Key", hash_name)


def credential_of(mechanism: str, password: bytes, salt: bytes, iterations: int = MIN_ITERATIONS) -> ScramCredential:
    """Returns the credential of a password."""
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)
    return ScramCredential(salt, *keys_of(mechanism, salted), iterations)


class Scram:
    """One of the two mechanisms."""

    def __init__(self, name: str, credentials: Credentials, random_bytes: Callable[[int], bytes]) -> None:
        self.name = name
        self._credentials = credentials
        self._random_bytes = random_bytes

    def begin(self, time_ms: Callable[[], int]) -> "ScramExchange":
        nonce = base64.b64encode(self._random_bytes(NONCE_BYTES)).decode()
        return ScramExchange(self.name, self._credentials, nonce)


class ScramExchange:
    """The exchange: two messages of the client, and the response to each."""

    __slots__ = ("_credential", "_credentials", "_first_messages", "_mechanism", "_nonce", "_result")

    def __init__(self, mechanism: str, credentials: Credentials, nonce: str) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = nonce  #: the server's part of the nonce
        self._credential: ScramCredential | None = None
        self._result: Authenticated | None = None
        self._first_messages = b""  #: the messages of both sides that the proof covers

    def evaluate(self, token: bytes) -> tuple[bytes, Authenticated | None]:
        """Takes the client's first or final message.

        :raises AuthenticationRefused: there is no such credential, the proof is wrong, or the message is malformed
        :raises CloseConnection: the proof has a wrong length, in which case Apache Kafka closes the connection, too
        """
        text = token.decode("utf-8", "replace")
        if self._credential is None:
            return self._first(text), None
        return self._final(text, self._credential), self._result

    def _first(self, text: str) -> bytes:
        message = _CLIENT_FIRST.fullmatch(text)
        if message is None:
            raise AuthenticationRefused
        name = message["name"].replace("=2C", ",").replace("=3D", "=")
        credential = self._look_up(name, _extensions(message["extensions"]))
        authorization_id = message["authorization_id"] or ""
        if authorization_id.replace("=2C", ",").replace("=3D", "=") not in ("", name):
            raise AuthenticationRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._credential = credential
        self._nonce = message["nonce"] + self._nonce
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._first_messages = f"{message['bare']},{answer}".encode()
        return answer.encode()

    def _look_up(self, name: str, extensions: dict[str, str]) -> ScramCredential:
        if extensions.get("tokenauth", "").lower() == "true":
            token = self._credentials.of_token(name, self._mechanism)
            if token is None:
                raise AuthenticationRefused
            self._result = Authenticated(token.owner, token.expires_at_ms, by_token=True)
            return token.credential
        credential = self._credentials.of_user(name, self._mechanism)
        if credential is None:
            raise AuthenticationRefused
        self._result = Authenticated(Principal(USER, name))
        return credential

    def _final(self, text: str, credential: ScramCredential) -> bytes:
        message = _CLIENT_FINAL.fullmatch(text)
        if message is None or message["nonce"] != self._nonce or message["extensions"]:
            raise AuthenticationRefused
        hash_name = HASHES[self._mechanism]
        signed = self._first_messages + b"," + message["without_proof"].encode()
        signature = hmac.digest(credential.stored_key, signed, hash_name)
        proof = base64.b64decode(message["proof"])
        if len(proof) != len(signature):
            raise CloseConnection("a SCRAM proof of another length")
        client_key = bytes(each ^ other for each, other in zip(proof, signature, strict=True))
        stored_key = hashlib.new(hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise AuthenticationRefused
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, signed, hash_name))


def _extensions(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split(",")[1:])
    return {key: value for key, _, value in pairs}
