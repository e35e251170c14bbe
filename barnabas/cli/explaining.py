"""Decodes and prints frames given in hexadecimal: requests, and responses to a request of an API and a version.

Knows nothing of connections.
"""

import json
import string
import sys
from collections.abc import Iterator
from typing import Any

import click

from barnabas.cli.output import show_json
from barnabas.errors import MalformedMessage
from barnabas.wire.frames import api_name, decode_request, decode_response, frames_in, requests
from barnabas.wire.message import Request
from barnabas.wire.plain import Hides, plain
from barnabas.wire.secrets import is_secret


def explain_frames(given: str, api: str | None, version: int | None, *, show_secrets: bool, as_json: bool) -> None:
    """Prints each frame in ``given``.

    :param given: hexadecimal digits; ``-`` takes those of standard input
    :param api: that of the request, if the frames are responses
    """
    known = requests()
    answered = None if api is None else request_called(api, known)
    if (answered is None) != (version is None):
        raise click.UsageError("A response is decoded with both --api and --version, a request with neither.")
    hides: Hides = (lambda structure, name: False) if show_secrets else is_secret
    try:
        for frame in frames_in(_bytes(sys.stdin.read() if given == "-" else given)):
            if answered is None or version is None:
                explained = plain_request(frame, known, hides)
            else:
                explained = plain_response(frame, answered, version, hides)
            if as_json:
                show_json(explained)
            else:
                _print(explained)
    except MalformedMessage as error:
        hint = "" if answered is not None else "; a response is decoded with --api and --version of its request"
        raise click.ClickException(f"The frame cannot be decoded: {error}{hint}") from None


def request_called(name: str, known: dict[int, type[Request]]) -> type[Request]:
    """Returns the request of an API by its name, in any spelling, or its key.

    :raises click.ClickException: there is none
    """
    wanted = name.replace("_", "").replace("-", "").lower().removesuffix("request").removesuffix("response")
    for key, request in known.items():
        if wanted in (str(key), api_name(request).lower()):
            return request
    raise click.ClickException(f"There is no API {name}")


def _bytes(digits: str) -> bytes:
    """Returns the bytes of hexadecimal digits, which may have spaces, colons or ``0x`` between them."""
    bare = digits.replace("0x", "").translate(str.maketrans("", "", string.whitespace + ":,"))
    try:
        found = bytes.fromhex(bare)
    except ValueError:
        raise click.UsageError("A frame is given in hexadecimal digits, two for each byte.") from None
    if not found:
        raise click.UsageError("The frame is empty.")
    return found


def plain_request(frame: bytes, known: dict[int, type[Request]], hides: Hides) -> dict[str, Any]:
    """Returns a request with its header. :raises MalformedMessage: it cannot be decoded"""
    found = decode_request(frame, known)
    return {
        "request": api_name(type(found.request)),
        "version": found.version,
        "correlation_id": found.correlation_id,
        "client_id": found.client_id,
        "size": len(frame),
        "fields": plain(found.request, found.version, hides),
    }


def plain_response(frame: bytes, answered: type[Request], version: int, hides: Hides) -> dict[str, Any]:
    """Returns a response with its header. :raises MalformedMessage: it cannot be decoded"""
    if version not in answered.versions:
        raise click.ClickException(f"{api_name(answered)} has no version {version}: there are {answered.versions}")
    found = decode_response(frame, answered, version)
    return {
        "response": api_name(answered),
        "version": found.version,
        "correlation_id": found.correlation_id,
        "size": len(frame),
        "fields": plain(found.response, found.version, hides),
    }


# ---------------------------------------------------------------- text


def _print(explained: dict[str, Any]) -> None:
    fields = explained.pop("fields")
    for name, value in explained.items():
        click.echo(f"{name}: {_word(value)}")
    for line in _lines(fields, "  "):
        click.echo(line)


def _lines(value: dict[str, Any], indent: str) -> Iterator[str]:
    """Yields a line for each field; an entry of a list begins with a dash."""
    for name, each in value.items():
        if isinstance(each, dict) and set(each) != {"hex"}:
            yield f"{indent}{name}:"
            yield from _lines(each, indent + "  ")
        elif isinstance(each, list) and any(isinstance(entry, dict) for entry in each):
            yield f"{indent}{name}:"
            for entry in each:
                first, *rest = _lines(entry, indent + "    ") if entry else [""]
                yield f"{indent}  - {first.strip()}".rstrip()
                yield from rest
        else:
            yield f"{indent}{name}: {_word(each)}"


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return f"0x{value['hex']}"
    if isinstance(value, str):
        return value if value and value.isascii() and not set(value) & set(" '\"\\:\n\t\r") else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)
