"""An HTTP client of the admin API of a Barnabas broker for tests.

Knows nothing of what the API does.
"""

import json
import urllib.error
import urllib.request
from typing import Any, Final

import click

TIMEOUT_S: Final = 10


class Refused(click.ClickException):
    """The API has responded with an error.

    :param status: of the response
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def ask(url: str, token: str | None, method: str, path: str, body: str | None = None, kind: str = "text/plain") -> Any:
    """Sends a request and returns the content of the response.

    :raises Refused: the response is an error
    :raises click.ClickException: there is no response
    """
    headers = {"content-type": kind, **({"authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else body.encode()
    request = urllib.request.Request(url.rstrip("/") + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        raise Refused(error.code, _message(error)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise click.ClickException(f"Cannot ask the admin API at {url}: {reason}") from None
    return json.loads(text) if text else None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"
