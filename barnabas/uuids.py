"""UUIDs as Kafka uses them: 16 bytes, written in URL-safe base64 without padding.

Knows nothing of what the ids identify.
"""

import base64
import os
from collections.abc import Callable


def uuid_text(value: bytes | bytearray) -> str:
    """Formats a UUID.

    >>> uuid_text(bytes(15) + bytes([1]))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def uuid_of(text: str) -> bytes:
    """Parses a UUID. :raises ValueError: the text is not that of a UUID"""
    text = text.strip()
    if len(text) != 22:
        raise ValueError(f"{text!r} is not a UUID")
    return base64.urlsafe_b64decode(text + "==")


def random_uuid(random_bytes: Callable[[int], bytes] = os.urandom) -> bytes:
    """Returns a random UUID (version 4) whose text does not begin with ``-``, as that of an option does."""
    while True:
        value = bytearray(random_bytes(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if not uuid_text(value).startswith("-"):
            return bytes(value)
