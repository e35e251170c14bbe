"""The login by SCRAM-SHA-256 and SCRAM-SHA-512: a proof of the password, and a check of the server's.

Knows nothing of where user and password come from. Follows RFC 5802; rules and texts are those of Apache Kafka's
``ScramSaslClient``.
"""

import base64
import hashlib
import hmac
import re
import secrets

from barnabas.security.login.login import LoginFailed, Tokens
from barnabas.security.sasl.scram import HASHES, MIN_ITERATIONS, NONCE_BYTES, keys_of

MOST_ITERATIONS = 1_000_000
"""The maximum number of iterations: more of them would keep this node busy for seconds."""

_SERVER_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2B\x2D-\x7E]+),s=(?P<salt>[A-Za-z0-9/+]+={0,2}),i=(?P<iterations>[0-9]{1,9})(?:,.*)?"
)
_SERVER_FINAL = re.compile(r"(?:e=(?P<error>[^,]*)|v=(?P<signature>[A-Za-z0-9/+]+={0,2}))(?:,.*)?")
_HEADER = "n,,"
_TOKEN = ",tokenauth=true"


def scram(mechanism: str, user: str, password: str, *, is_token: bool = False) -> Tokens:
    """Logs in.

    :param is_token: whether user and password are the id and the HMAC of a delegation token (KIP-48)
    :raises LoginFailed: the server's messages are malformed, or it does not know the password
    """
    hash_name = HASHES[mechanism]
    nonce = base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
    name = user.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={name},r={nonce}{_TOKEN if is_token else ''}"
    answer = (yield (_HEADER + bare).encode()).decode("utf-8", "replace")
    first = _SERVER_FIRST.fullmatch(answer)
    if first is None:
        raise LoginFailed("Invalid SCRAM server first message format")
    if not first["nonce"].startswith(nonce) or first["nonce"] == nonce:
        raise LoginFailed("Invalid server nonce: does not start with client nonce")
    iterations = int(first["iterations"])
    if iterations < MIN_ITERATIONS:
        raise LoginFailed(f"Requested iterations {iterations} is less than the minimum {MIN_ITERATIONS}")
    if iterations > MOST_ITERATIONS:
        raise LoginFailed(f"Requested iterations {iterations} is more than the maximum {MOST_ITERATIONS}")
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), base64.b64decode(first["salt"]), iterations)
    stored_key, server_key = keys_of(mechanism, salted)
    without_proof = f"c={base64.b64encode(_HEADER.encode()).decode()},r={first['nonce']}"
    signed = f"{bare},{answer},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, hmac.digest(stored_key, signed, hash_name), strict=True))
    answer = (yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()).decode("utf-8", "replace")
    final = _SERVER_FINAL.fullmatch(answer)
    if final is None:
        raise LoginFailed("Invalid SCRAM server final message format")
    if final["error"] is not None:
        raise LoginFailed("Sasl authentication using SCRAM failed with an error of the server")
    expected = hmac.digest(server_key, signed, hash_name)
    if not hmac.compare_digest(base64.b64decode(final["signature"]), expected):
        raise LoginFailed("Invalid server signature in server final message")
