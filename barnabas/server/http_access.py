"""Access control of the HTTP services: a client needs the token; without a token set, only programs of this machine
have access, and no web page.

Knows nothing of what is served. Without a token, a Host other than this machine (DNS rebinding) is refused, and so is a
request from a page of another origin.
"""

from typing import Final

from barnabas.config.validators import ConfigError
from barnabas.server.http import Address, Application, Receive, Scope, Send

LOCAL_NAMES: Final = ("localhost", "::1")


def check_access(config: str, address: Address, token_config: str, token: str | None) -> None:
    """Checks that a service without a token can only be reached from this machine.

    :raises ConfigError: others can reach it
    """
    if not token and not address.is_local:
        raise ConfigError(config, str(address), f"an address of this machine, or given with {token_config}")


def guarded(application: Application, token: str | None) -> Application:
    """Returns the application, wrapped so that each request is checked."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            refusal = _wrong_token(headers, token) if token else _stranger(headers)
            if refusal is not None:
                await _refuse(send, *refusal)
                return
        await application(scope, receive, send)

    return check


def _wrong_token(headers: dict[bytes, str], token: str) -> tuple[int, str] | None:
    import hmac

    kind, _, given = headers.get(b"authorization", "").partition(" ")
    if kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return None
    return 401, "send the token: Authorization: Bearer ..."


def _stranger(headers: dict[bytes, str]) -> tuple[int, str] | None:
    host = headers.get(b"host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.removeprefix("[").removesuffix("]").lower()
    if name not in LOCAL_NAMES and not name.startswith("127."):
        return 403, f"this is for programs of this machine, not for {host!r}"
    origin = headers.get(b"origin")
    if origin is not None and origin.partition("://")[2] != host:
        return 403, f"this is not for pages of {origin!r}"
    return None


async def _refuse(send: Send, status: int, message: str) -> None:
    import json

    body = json.dumps({"error": {"type": "Forbidden", "message": message}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
